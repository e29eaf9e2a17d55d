package io.stategauge.spark;

/**
 * One event on its way out. Its fields belong to the lock of the {@link EventQueue} that holds it,
 * but for those that never change.
 */
final class Entry {
  /** What a Spark object is believed to take in memory until it has been rendered. */
  static final int UNRENDERED_BYTES = 4096;

  /** The types of an envelope. */
  enum Kind {
    STARTED("started"),
    PROGRESS("progress"),
    IDLE("idle"),
    TERMINATED("terminated"),
    HEARTBEAT("heartbeat");

    /** The word in the envelope. */
    final String word;

    Kind(String word) {
      this.word = word;
    }
  }

  final Kind kind;

  /** When the event came, Unix milliseconds of the driver's clock. */
  final long atMs;

  /** Running number of the sender, from 1; given by the queue. */
  long seq;

  /** Whether it left the queue, delivered or not. */
  boolean gone;

  /** Spark's object until it is rendered, then null; only the rendering thread takes it away. */
  Object event;

  /** The envelope from the key "at" on, UTF-8; null until it is rendered. */
  byte[] body;

  /** The Kafka key: the query's id, or the sender's where there is none; null until rendered. */
  String key;

  Entry(Kind kind, Object event, long atMs) {
    this.kind = kind;
    this.event = event;
    this.atMs = atMs;
  }

  boolean isRendered() {
    return body != null;
  }

  /** What the entry counts for in the queue's limit of bytes. */
  int size() {
    return body == null ? UNRENDERED_BYTES : body.length;
  }
}
