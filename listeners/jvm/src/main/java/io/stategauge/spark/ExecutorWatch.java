package io.stategauge.spark;

import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;

/** Counts the executors that come and go, and hears when the application ends. */
final class ExecutorWatch extends SparkListener {
  private final AtomicLong changes = new AtomicLong();
  private final AtomicLong losses = new AtomicLong();
  private final Runnable atEnd;

  /**
   * Makes a watch.
   *
   * @param atEnd called when the application ends, on Spark's listener bus
   */
  ExecutorWatch(Runnable atEnd) {
    this.atEnd = atEnd;
  }

  /** A number that changes when executors come or go. */
  long changes() {
    return changes.get();
  }

  /** How many executors went without having been asked to. */
  long losses() {
    return losses.get();
  }

  @Override
  public void onExecutorAdded(SparkListenerExecutorAdded event) {
    changes.incrementAndGet();
  }

  @Override
  public void onExecutorRemoved(SparkListenerExecutorRemoved event) {
    changes.incrementAndGet();
    if (!isIntended(event.reason())) {
      losses.incrementAndGet();
    }
  }

  @Override
  public void onApplicationEnd(SparkListenerApplicationEnd event) {
    atEnd.run();
  }

  /** Tells executors that were given back from those that were lost, by Spark's own words. */
  static boolean isIntended(String reason) {
    return reason != null
        && (reason.contains("killed by driver")
            || reason.contains("Executor decommission")
            || reason.contains("finished decommissioning"));
  }
}
