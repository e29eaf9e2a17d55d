package io.stategauge.spark;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What the listeners of one Spark application share: the pipeline, its facts and its end. */
final class Application {
  private static final Logger LOG = LoggerFactory.getLogger("io.stategauge.spark");

  /** Events of the same shutdown come on another thread; this long without one is their end. */
  private static final long QUIET_MS = 300;

  private static final long FIRST_BACKOFF_MS = 500;

  private static Application shared;

  private final Settings settings;
  private final SparkFacts facts;
  private final Pipeline pipeline;
  private final QuietLog log = new QuietLog(LOG::warn, System::currentTimeMillis);
  private final Thread hook = new Thread(this::endWithTheJvm, "stategauge-shutdown");
  private final CountDownLatch done = new CountDownLatch(1);
  private final CallbackTimer wall = new CallbackTimer();
  private final CallbackTimer cpu = new CallbackTimer();
  private final ThreadMXBean threads;
  private volatile boolean ended;

  private Application(Settings settings) throws IOException {
    this.settings = settings;
    this.threads = settings.debug ? ManagementFactory.getThreadMXBean() : null;
    this.facts = new SparkFacts(this::end);
    Transport transport = settings.kafkaTopic == null ? new HttpTransport(settings) : new KafkaTransport(settings);
    this.pipeline = new Pipeline(settings, facts, transport, FIRST_BACKOFF_MS);
  }

  /**
   * Returns the application that runs; makes and starts it if there is none.
   *
   * @return null where the settings name no place to send to
   * @throws IOException if the transport cannot be made
   */
  static synchronized Application shared(Settings settings) throws IOException {
    if (shared != null && !shared.ended) {
      return shared;
    }
    settings.faults.forEach(fault -> LOG.warn("stategauge: {}", fault));
    if (!settings.isUsable()) {
      return null;
    }
    shared = new Application(settings);
    shared.start();
    return shared;
  }

  private void start() {
    warmUp();
    pipeline.start();
    Runtime.getRuntime().addShutdownHook(hook);
    LOG.info("stategauge: sending the events of streaming queries to {}", settings.destination());
  }

  /** Loads what the first callback, on a query's own thread, would otherwise have to load. */
  private void warmUp() {
    facts.noteSessions();
    EventQueue scratch = new EventQueue(1, Long.MAX_VALUE);
    for (int i = 0; i < 100; i++) {
      scratch.offer(new Entry(Entry.Kind.STARTED, this, System.currentTimeMillis()));
      time(new CallbackTimer(), new CallbackTimer(), () -> {});
    }
  }

  /** Takes an event in. Neither waits nor fails. */
  void offer(Entry.Kind kind, Object event) {
    time(wall, cpu, () -> take(kind, event));
  }

  private void take(Entry.Kind kind, Object event) {
    try {
      if (kind == Entry.Kind.STARTED) {
        facts.noteSessions();
      }
      pipeline.offer(kind, event);
    } catch (RuntimeException | LinkageError e) {
      log.say("stategauge: cannot take an event in: " + Redaction.message(String.valueOf(e)));
    }
  }

  /** Measures a callback's body: on the wall clock, and what this thread itself worked. */
  private void time(CallbackTimer onTheWall, CallbackTimer onTheCpu, Runnable body) {
    if (threads == null) {
      body.run();
      return;
    }
    long cpuBegan = threads.getCurrentThreadCpuTime();
    long began = System.nanoTime();
    body.run();
    onTheWall.add(System.nanoTime() - began);
    onTheCpu.add(threads.getCurrentThreadCpuTime() - cpuBegan);
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
      LOG.warn("stategauge: callbacks: {}; of it CPU: {}; {}; last flush {} ms", wall, cpu, pipeline.report(), tookMs);
    }
    done.countDown();
    unhook();
  }

  /** Leaves Spark the time to end the application itself, whose last events would else be missed. */
  private void endWithTheJvm() {
    try {
      if (done.await(settings.stopMs / 2, TimeUnit.MILLISECONDS)) {
        return;
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    end();
  }

  private void unhook() {
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // The JVM is shutting down already.
    }
  }
}
