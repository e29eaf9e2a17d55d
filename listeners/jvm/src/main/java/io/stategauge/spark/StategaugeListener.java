package io.stategauge.spark;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.streaming.StreamingQueryListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends the events of all streaming queries of an application to stategauge. Switched on by
 *
 * <pre>
 * spark.sql.streaming.streamingQueryListeners=io.stategauge.spark.StategaugeListener
 * spark.stategauge.url=http://stategauge:9980
 * </pre>
 *
 * <p>The listeners of all sessions of an application share one queue, one sender and two daemon
 * threads. No callback waits, and none fails: faults are logged, once a minute.
 */
public class StategaugeListener extends StreamingQueryListener {
  private static final long serialVersionUID = 1L;
  private static final Logger LOG = LoggerFactory.getLogger("io.stategauge.spark");

  private final transient Application application;

  /** Makes a listener with the settings of the running application. */
  public StategaugeListener() {
    this(activeConf());
  }

  /**
   * Makes a listener. Spark calls this one. Never fails: with settings that cannot be used it warns
   * and does nothing.
   *
   * @param conf the application's settings
   */
  public StategaugeListener(SparkConf conf) {
    Application shared = null;
    try {
      shared = Application.shared(new Settings(settings(conf)));
    } catch (IOException | RuntimeException | LinkageError e) {
      LOG.warn("stategauge: no events will be sent: {}", Redaction.message(String.valueOf(e)));
    }
    this.application = shared;
  }

  @Override
  public void onQueryStarted(QueryStartedEvent event) {
    offer(Entry.Kind.STARTED, event);
  }

  @Override
  public void onQueryProgress(QueryProgressEvent event) {
    offer(Entry.Kind.PROGRESS, event);
  }

  /** Called from Spark 3.5 on. */
  @Override
  public void onQueryIdle(QueryIdleEvent event) {
    offer(Entry.Kind.IDLE, event);
  }

  @Override
  public void onQueryTerminated(QueryTerminatedEvent event) {
    offer(Entry.Kind.TERMINATED, event);
  }

  private void offer(Entry.Kind kind, Object event) {
    if (application != null) {
      application.offer(kind, event);
    }
  }

  private static SparkConf activeConf() {
    SparkContext context = SparkFacts.activeContext();
    return context == null ? new SparkConf() : context.getConf();
  }

  private static Map<String, String> settings(SparkConf conf) {
    Map<String, String> out = new HashMap<>();
    for (scala.Tuple2<String, String> pair : conf.getAll()) {
      out.put(pair._1(), pair._2());
    }
    return out;
  }
}
