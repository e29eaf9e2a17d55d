package io.stategauge.spark;

import java.util.function.Consumer;
import java.util.function.LongSupplier;

/** Passes on at most one line a minute and tells how many it kept back. */
final class QuietLog {
  private static final long PERIOD_MS = 60_000;

  private final Consumer<String> sink;
  private final LongSupplier clockMs;
  private long nextMs = Long.MIN_VALUE;
  private long keptBack;

  QuietLog(Consumer<String> sink, LongSupplier clockMs) {
    this.sink = sink;
    this.clockMs = clockMs;
  }

  synchronized void say(String line) {
    long now = clockMs.getAsLong();
    if (now < nextMs) {
      keptBack++;
      return;
    }
    nextMs = now + PERIOD_MS;
    sink.accept(keptBack == 0 ? line : line + " (" + keptBack + " more lines kept back)");
    keptBack = 0;
  }
}
