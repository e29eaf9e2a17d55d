package io.stategauge.spark;

import java.util.List;

/** The way out. Used by the sending thread only, but for {@link #close}. */
interface Transport {
  /** What became of a batch. */
  enum Outcome {
    /** It arrived. */
    DELIVERED,
    /** Not now: the same may be tried again. */
    RETRY,
    /** Too much at once: fewer may be tried. */
    TOO_LARGE,
    /** No try will help. */
    REFUSED
  }

  /** An outcome with what it says beside. */
  final class Result {
    final Outcome outcome;

    /** Why, in words without secrets; empty if there is nothing to say. */
    final String reason;

    /** How long the other end asks to be left alone, in milliseconds; 0 if it does not say. */
    final long retryAfterMs;

    Result(Outcome outcome, String reason, long retryAfterMs) {
      this.outcome = outcome;
      this.reason = reason;
      this.retryAfterMs = retryAfterMs;
    }

    static Result of(Outcome outcome, String reason) {
      return new Result(outcome, reason, 0);
    }
  }

  /** One event, ready to go. */
  final class Message {
    final String key;
    final byte[] envelope;

    Message(String key, byte[] envelope) {
      this.key = key;
      this.envelope = envelope;
    }
  }

  /** Sends messages in order, and waits until the outcome is known, for a bounded time. */
  Result send(List<Message> messages) throws InterruptedException;

  /**
   * Reports whether messages are spread by their key, so that a heartbeat has to come once for each
   * query.
   */
  boolean isKeyed();

  /** Lets go of connections without waiting. */
  void close();
}
