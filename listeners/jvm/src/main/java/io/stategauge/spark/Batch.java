package io.stategauge.spark;

import java.util.List;

/** Events that go out together, oldest first. Their bodies do not change while they are in flight. */
final class Batch {
  /** Never empty. */
  final List<Entry> entries;

  /** How many events the sender had dropped when the batch was taken. */
  final long dropped;

  Batch(List<Entry> entries, long dropped) {
    this.entries = entries;
    this.dropped = dropped;
  }
}
