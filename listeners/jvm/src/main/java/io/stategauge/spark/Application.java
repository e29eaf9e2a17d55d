package io.stategauge.spark;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What the listeners of one Spark application share: the pipeline, its facts and its end. */
final class Application {
  private static final Logger LOG = LoggerFactory.getLogger("io.stategauge.spark");

  /** Events of the same shutdown come on another thread; this long without one is their end. */
  private static final long QUIET_MS = 300;

  private static Application shared;

  private final Settings settings;
  private final SparkFacts facts;
  private final Pipeline pipeline;
  private final CallbackTimer timer = new CallbackTimer();
  private final QuietLog log = new QuietLog(LOG::warn, System::currentTimeMillis);
  private volatile boolean ended;

  private Application(Settings settings) throws IOException {
    this.settings = settings;
    this.facts = new SparkFacts(this::end);
    Transport transport = settings.kafkaTopic == null ? new HttpTransport(settings) : new KafkaTransport(settings);
    this.pipeline = new Pipeline(settings, facts, transport);
  }

  /**
   * Returns the application that runs, makes and starts it if there is none.
   *
   * @return null where the settings name no place to send to
   * @throws IOException if the transport cannot be made
   */
  static synchronized Application shared(Settings settings) throws IOException {
    if (shared != null && !shared.ended) {
      return shared;
    }
    List<String> faults = settings.faults;
    faults.forEach(fault -> LOG.warn("stategauge: {}", fault));
    if (!settings.isUsable()) {
      return null;
    }
    shared = new Application(settings);
    shared.start();
    return shared;
  }

  private void start() {
    facts.noteSessions(); // also loads what the first callback would otherwise have to load
    pipeline.start();
    Thread last = new Thread(this::end, "stategauge-shutdown");
    Runtime.getRuntime().addShutdownHook(last);
    LOG.info("stategauge: sending the events of streaming queries to {}", settings.destination());
  }

  /** Takes an event in. Neither waits nor fails. */
  void offer(Entry.Kind kind, Object event) {
    long began = System.nanoTime();
    try {
      if (kind == Entry.Kind.STARTED) {
        facts.noteSessions();
      }
      pipeline.offer(kind, event);
    } catch (RuntimeException | LinkageError e) {
      log.say("stategauge: cannot take an event in: " + Redaction.message(String.valueOf(e)));
    }
    timer.add(System.nanoTime() - began);
  }

  /** Sends what waits, within the limit for it, and lets go of everything. Once. */
  private void end() {
    synchronized (this) {
      if (ended) {
        return;
      }
      ended = true;
    }
    long began = System.nanoTime();
    boolean all = pipeline.flush(settings.stopMs, QUIET_MS);
    pipeline.close();
    if (!all) {
      LOG.warn("stategauge: the application ends with events unsent: {}", pipeline.report());
    }
    if (settings.debug) {
      long tookMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
      LOG.warn("stategauge: {}; {}; last flush {} ms", timer, pipeline.report(), tookMs);
    }
  }
}
