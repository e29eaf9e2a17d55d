package io.stategauge.spark;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;

/** Keeps how long the newest calls of our callbacks took. Safe for concurrent use, never waits. */
final class CallbackTimer {
  private static final int KEPT = 8192;

  private final AtomicLongArray nanos = new AtomicLongArray(KEPT);
  private final AtomicInteger calls = new AtomicInteger();

  void add(long tookNanos) {
    nanos.set((calls.getAndIncrement() & Integer.MAX_VALUE) % KEPT, tookNanos);
  }

  /** Returns the p-th quantile in nanoseconds, the larger neighbour between two; 0 without a call. */
  long quantile(double p) {
    int n = Math.min(calls.get(), KEPT);
    if (n == 0) {
      return 0;
    }
    long[] sorted = new long[n];
    for (int i = 0; i < n; i++) {
      sorted[i] = nanos.get(i);
    }
    Arrays.sort(sorted);
    return sorted[Math.min(n - 1, (int) (p * n))];
  }

  @Override
  public String toString() {
    return String.format(
        "%d calls, p50 %.1f us, p99 %.1f us, longest %.1f us",
        calls.get(), quantile(0.5) / 1e3, quantile(0.99) / 1e3, quantile(1) / 1e3);
  }
}
