package io.stategauge.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Carries events from the callbacks to the transport by two daemon threads, which {@link #close}
 * ends: one renders and makes heartbeats, one sends.
 */
final class Pipeline {
  private static final Logger LOG = LoggerFactory.getLogger("io.stategauge.spark");
  private static final int MAX_BACKOFF_MS = 30_000;
  private static final long HURRIED_BACKOFF_MS = 200;
  private static final long IDLE_MS = 1_000;

  private final Settings settings;
  private final DriverFacts facts;
  private final Transport transport;
  private final Envelopes envelopes;
  private final EventQueue queue;
  private final QuietLog log = new QuietLog(LOG::warn, System::currentTimeMillis);
  private final Backoff backoff;
  private final AtomicLong interruptions = new AtomicLong();
  private final AtomicLong sent = new AtomicLong();
  private final AtomicLong failures = new AtomicLong();
  private final Thread renderer;
  private final Thread courier;
  private volatile boolean closed;
  private int batchLimit;

  /**
   * Makes a pipeline that {@link #start} sets going.
   *
   * @param firstBackoffMs the wait after a first failed attempt, in milliseconds
   */
  Pipeline(Settings settings, DriverFacts facts, Transport transport, long firstBackoffMs) {
    this.settings = settings;
    this.facts = facts;
    this.transport = transport;
    this.envelopes = new Envelopes(UUID.randomUUID().toString(), settings.cluster, facts);
    this.queue = new EventQueue(settings.queueEvents, settings.queueBytes);
    this.backoff = new Backoff(firstBackoffMs, MAX_BACKOFF_MS, () -> ThreadLocalRandom.current().nextDouble());
    this.batchLimit = settings.batchEvents;
    this.renderer = daemon("stategauge-renderer", this::render);
    this.courier = daemon("stategauge-sender", this::carry);
  }

  private static Thread daemon(String name, Runnable body) {
    Thread thread = new Thread(body, name);
    thread.setDaemon(true);
    return thread;
  }

  void start() {
    renderer.start();
    courier.start();
  }

  /** Takes an event of Spark in and returns at once. */
  void offer(Entry.Kind kind, Object event) {
    queue.offer(new Entry(kind, event, System.currentTimeMillis()));
  }

  /** Sends what waits, for at most the time given; for events still to come it goes on working. */
  boolean flush(long timeoutMs, long quietMs) {
    try {
      return queue.flush(timeoutMs, quietMs);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** Ends both threads without waiting for what is under way. Later events are lost. */
  void close() {
    closed = true;
    renderer.interrupt();
    courier.interrupt();
    transport.close();
  }

  /** Waits until both threads have ended. */
  void join() throws InterruptedException {
    renderer.join();
    courier.join();
  }

  boolean isClosed() {
    return closed;
  }

  EventQueue queue() {
    return queue;
  }

  /** Returns what became of the events so far, for people. */
  String report() {
    return "sent " + sent + ", dropped " + queue.dropped() + ", waiting " + queue.size()
        + ", failed attempts " + failures;
  }

  // The rendering thread.

  private void render() {
    long heartbeatAt = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(settings.heartbeatMs);
    try {
      while (!closed) {
        long left = TimeUnit.NANOSECONDS.toMillis(heartbeatAt - System.nanoTime());
        Entry entry = queue.nextUnrendered(Math.max(1, left));
        if (entry != null) {
          renderOne(entry);
        }
        if (System.nanoTime() - heartbeatAt >= 0) {
          heartbeatAt = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(settings.heartbeatMs);
          heartbeat();
        }
      }
    } catch (InterruptedException e) {
      // Closed.
    }
  }

  private void renderOne(Entry entry) {
    try {
      UUID query = EventJson.queryId(entry.kind, entry.event);
      if (entry.kind == Entry.Kind.STARTED || entry.kind == Entry.Kind.PROGRESS) {
        facts.started(query, EventJson.runId(entry.kind, entry.event)); // a query may be older than we
      }
      String event = EventJson.render(entry.kind, entry.event);
      byte[] body = envelopes.body(entry.kind, query, event, entry.atMs, interruptions.get());
      if (entry.kind == Entry.Kind.TERMINATED) {
        facts.ended(query);
        envelopes.ended(query);
      }
      queue.rendered(entry, query.toString(), body);
    } catch (RuntimeException | LinkageError e) {
      queue.unrenderable(entry);
      log.say("stategauge: cannot render an event of type " + entry.kind.word + ", it is dropped: "
          + Redaction.message(String.valueOf(e)));
    }
  }

  private void heartbeat() {
    try {
      for (Entry heartbeat : envelopes.heartbeats(System.currentTimeMillis(), transport.isKeyed())) {
        queue.offerHeartbeat(heartbeat);
      }
    } catch (RuntimeException | LinkageError e) {
      log.say("stategauge: cannot make a heartbeat: " + Redaction.message(String.valueOf(e)));
    }
  }

  // The sending thread.

  private void carry() {
    try {
      while (!closed) {
        Batch batch = queue.take(batchLimit, settings.batchBytes, IDLE_MS, settings.flushMs);
        if (batch != null) {
          carryOne(batch);
        }
      }
    } catch (InterruptedException e) {
      // Closed.
    }
  }

  private void carryOne(Batch batch) throws InterruptedException {
    Transport.Result result = attempt(batch);
    int count = batch.entries.size();
    boolean split = result.outcome == Transport.Outcome.TOO_LARGE && count > 1;
    if (result.outcome == Transport.Outcome.DELIVERED) {
      delivered(count, result);
    } else if (split) {
      batchLimit = count / 2;
      queue.failed();
    } else if (result.outcome == Transport.Outcome.RETRY) {
      retryLater(result);
    } else {
      queue.refused();
      failures.incrementAndGet();
      log.say("stategauge: " + settings.destination() + " refused " + count + " events, they are dropped: "
          + result.reason);
    }
  }

  private Transport.Result attempt(Batch batch) throws InterruptedException {
    List<Transport.Message> messages = new ArrayList<>(batch.entries.size());
    for (Entry entry : batch.entries) {
      messages.add(new Transport.Message(entry.key, envelopes.whole(entry, batch.dropped)));
    }
    try {
      return transport.send(messages);
    } catch (RuntimeException | LinkageError e) {
      return Transport.Result.of(Transport.Outcome.RETRY, Redaction.message(String.valueOf(e)));
    }
  }

  private void delivered(int count, Transport.Result result) {
    queue.delivered();
    sent.addAndGet(count);
    batchLimit = Math.min(settings.batchEvents, Math.max(1, batchLimit) * 2);
    if (backoff.reset()) {
      interruptions.incrementAndGet();
    }
    if (!result.reason.isEmpty()) {
      log.say("stategauge: " + result.reason);
    }
  }

  private void retryLater(Transport.Result result) throws InterruptedException {
    queue.failed();
    failures.incrementAndGet();
    long delayMs = Math.max(backoff.next(), result.retryAfterMs);
    log.say("stategauge: " + settings.destination() + " cannot take events now, next attempt in " + delayMs
        + " ms; " + queue.size() + " wait, " + queue.dropped() + " dropped: " + result.reason);
    queue.pause(delayMs, HURRIED_BACKOFF_MS);
  }
}
