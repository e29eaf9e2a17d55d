package io.stategauge.spark;

import java.util.function.DoubleSupplier;

/** Exponential back-off with jitter: doubles from the first delay up to the cap, minus up to half. */
final class Backoff {
  private final long firstMs;
  private final long capMs;
  private final DoubleSupplier random;
  private int failures;

  /**
   * Makes a back-off.
   *
   * @param random numbers from 0 to below 1
   */
  Backoff(long firstMs, long capMs, DoubleSupplier random) {
    this.firstMs = firstMs;
    this.capMs = capMs;
    this.random = random;
  }

  /** Notes a failure and returns how long to wait, in milliseconds. */
  long next() {
    long full = Math.min(capMs, firstMs << Math.min(failures++, 30));
    return full - (long) (full / 2 * random.getAsDouble());
  }

  /** Notes a success: the next failure begins anew. Reports whether there had been a failure. */
  boolean reset() {
    boolean failed = failures > 0;
    failures = 0;
    return failed;
  }
}
