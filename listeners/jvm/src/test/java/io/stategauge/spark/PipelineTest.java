package io.stategauge.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class PipelineTest {
  private final List<AutoCloseable> open = new ArrayList<>();
  private final FakeFacts facts = new FakeFacts();

  @AfterEach
  void closeAll() throws Exception {
    for (AutoCloseable each : open) {
      each.close();
    }
  }

  private <T extends AutoCloseable> T keep(T closeable) {
    open.add(closeable);
    return closeable;
  }

  private Pipeline start(Settings settings) throws IOException {
    Pipeline pipeline = new Pipeline(settings, facts, new HttpTransport(settings), 5);
    open.add(0, pipeline::close);
    pipeline.start();
    return pipeline;
  }

  private static void offer(Pipeline pipeline, int from, int to) {
    for (int i = from; i < to; i++) {
      pipeline.offer(Entry.Kind.PROGRESS, Samples.progress(i));
    }
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
      return socket.getLocalPort();
    }
  }

  @Test
  void aHealthyCollectorGetsEverythingInOrder() throws Exception {
    FakeCollector collector = keep(FakeCollector.healthy());
    Pipeline pipeline = start(Samples.settings("url", collector.url(), "batch.size", "7"));
    pipeline.offer(Entry.Kind.STARTED, Samples.started());
    offer(pipeline, 0, 50);
    pipeline.offer(Entry.Kind.IDLE, Samples.idle());
    pipeline.offer(Entry.Kind.TERMINATED, Samples.terminated(null));
    List<String> lines = collector.await(53);
    assertEquals(Samples.range(1, 54), Samples.seqs(lines));
    assertEquals(Samples.range(0, 50), Samples.batches(lines));
    assertEquals(0, Samples.lastDropped(lines));
    assertTrue(lines.get(0).contains("\"type\":\"started\""), lines.get(0));
    assertTrue(lines.get(52).contains("\"type\":\"terminated\""), lines.get(52));
    assertTrue(facts.running.isEmpty());
  }

  @Test
  void aCollectorDownFor600EventsMissesNothingWithinTheQueue() throws Exception {
    int port = freePort();
    Pipeline pipeline = start(Samples.settings("url", "http://127.0.0.1:" + port, "queue.size", "1000"));
    offer(pipeline, 0, 600);
    FakeCollector collector = keep(new FakeCollector((x, lines) -> 200, port));
    offer(pipeline, 600, 700);
    List<String> lines = collector.await(700);
    assertEquals(Samples.range(0, 700), Samples.batches(lines));
    assertEquals(Samples.range(1, 701), Samples.seqs(lines));
    assertEquals(0, Samples.lastDropped(lines));
  }

  @Test
  void beyondTheQueueTheOldestAreDroppedAndCountedExactly() throws Exception {
    int port = freePort();
    Pipeline pipeline = start(Samples.settings("url", "http://127.0.0.1:" + port, "queue.size", "250"));
    offer(pipeline, 0, 600);
    FakeCollector collector = keep(new FakeCollector((x, lines) -> 200, port));
    pipeline.offer(Entry.Kind.PROGRESS, Samples.progress(600));
    assertTrue(pipeline.flush(60_000, 0));
    List<String> lines = collector.taken();
    long dropped = Samples.lastDropped(lines);
    // A request under way protects its events, so a few of the oldest may have outlived younger ones.
    assertEquals(601, dropped + lines.size());
    assertTrue(lines.size() >= 250 && lines.size() <= 251, "arrived: " + lines.size());
    List<Long> batches = Samples.batches(lines);
    assertEquals(600L, batches.get(batches.size() - 1));
    assertEquals(batches.stream().sorted().toList(), batches);
  }

  @Test
  void anEventSentAgainCountsItsDropsAsTheyAreThen() throws Exception {
    AtomicInteger calls = new AtomicInteger();
    CountDownLatch release = new CountDownLatch(1);
    FakeCollector collector = keep(new FakeCollector((x, lines) -> {
      if (calls.incrementAndGet() > 1) {
        return 200;
      }
      release.await();
      return 503;
    }));
    Pipeline pipeline = start(Samples.settings("url", collector.url(), "queue.size", "10", "batch.size", "4", "flush.interval", "0"));
    offer(pipeline, 0, 1);
    collector.awaitRequests(1);
    offer(pipeline, 1, 21);
    // What is offered is taken over now and then: only then is it known what had to go.
    while (pipeline.queue().dropped() < 11) {
      Thread.onSpinWait();
    }
    release.countDown();
    assertTrue(pipeline.flush(60_000, 0));
    List<String> lines = collector.taken();
    assertEquals(21, lines.size() + Samples.lastDropped(lines));
    assertEquals(11, Samples.lastDropped(lines));
  }

  @Test
  void aBusyCollectorIsLeftAloneAsItAsks() throws Exception {
    AtomicInteger calls = new AtomicInteger();
    List<Long> times = new ArrayList<>();
    FakeCollector collector = keep(new FakeCollector((x, lines) -> {
      times.add(System.nanoTime());
      x.getResponseHeaders().add("Retry-After", "1");
      return calls.incrementAndGet() <= 1 ? 429 : 200;
    }));
    Pipeline pipeline = start(Samples.settings("url", collector.url()));
    offer(pipeline, 0, 3);
    assertEquals(Samples.range(0, 3), Samples.batches(collector.await(3)));
    assertTrue(times.get(1) - times.get(0) >= 990_000_000L, "asked again too soon");
    assertEquals(0, pipeline.queue().dropped());
  }

  @Test
  void serverFaultsAreRetriedUntilTheyPass() throws Exception {
    int[] statuses = {500, 503, 408, 429, 502, 0};
    AtomicInteger calls = new AtomicInteger();
    FakeCollector collector = keep(new FakeCollector((x, lines) -> {
      int call = calls.getAndIncrement();
      return call < statuses.length ? statuses[call] : 200;
    }));
    Pipeline pipeline = start(Samples.settings("url", collector.url()));
    offer(pipeline, 0, 20);
    assertEquals(Samples.range(0, 20), Samples.batches(collector.await(20)));
    assertEquals(0, pipeline.queue().dropped());
  }

  @Test
  void aRefusedBatchIsDroppedCountedAndDoesNotHoldTheNext() throws Exception {
    FakeCollector collector = keep(new FakeCollector((x, lines) ->
        lines.get(0).contains("\"seq\":1,") ? 400 : 200));
    Pipeline pipeline = start(Samples.settings("url", collector.url(), "batch.size", "5"));
    offer(pipeline, 0, 20);
    assertTrue(pipeline.flush(60_000, 0));
    List<String> lines = collector.taken();
    assertEquals(20, lines.size() + Samples.lastDropped(lines));
    assertEquals(pipeline.queue().dropped(), Samples.lastDropped(lines));
    assertFalse(Samples.batches(lines).contains(0L));
  }

  @Test
  void aBatchThatIsTooLargeIsSplitUntilItFits() throws Exception {
    FakeCollector collector = keep(new FakeCollector((x, lines) -> lines.size() > 3 ? 413 : 200));
    Pipeline pipeline = start(Samples.settings("url", collector.url(), "batch.size", "64", "flush.interval", "100ms"));
    offer(pipeline, 0, 64);
    assertEquals(Samples.range(0, 64), Samples.batches(collector.await(64)));
    assertEquals(0, pipeline.queue().dropped());
  }

  @Test
  void anEventThatIsTooLargeAloneIsDroppedAlone() throws Exception {
    FakeCollector collector = keep(new FakeCollector((x, lines) ->
        lines.stream().anyMatch(l -> l.contains("\"batchId\":5,")) ? 413 : 200));
    Pipeline pipeline = start(Samples.settings("url", collector.url(), "batch.size", "64"));
    offer(pipeline, 0, 12);
    assertTrue(pipeline.flush(60_000, 0));
    List<Long> expected = Samples.range(0, 12);
    expected.remove(5L);
    assertEquals(expected, Samples.batches(collector.taken()));
    assertEquals(1, pipeline.queue().dropped());
  }

  @Test
  void aHeartbeatNamesTheRunningQueries() throws Exception {
    FakeCollector collector = keep(FakeCollector.healthy());
    Pipeline pipeline = start(Samples.settings("url", collector.url(), "heartbeat.interval", "1s"));
    pipeline.offer(Entry.Kind.STARTED, Samples.started());
    String line = collector.await(2).get(1);
    assertTrue(line.contains("\"type\":\"heartbeat\",\"event\":{\"active\":[{\"id\":\"" + Samples.QUERY
        + "\",\"runId\":\"" + Samples.RUN + "\",\"triggerActive\":true}]}}"), line);
  }

  @Test
  void aQueryThatStartedBeforeTheListenerIsInTheHeartbeat() throws Exception {
    FakeCollector collector = keep(FakeCollector.healthy());
    Pipeline pipeline = start(Samples.settings("url", collector.url(), "heartbeat.interval", "1s"));
    offer(pipeline, 7, 8);
    String line = collector.await(2).get(1);
    assertTrue(line.contains("\"active\":[{\"id\":\"" + Samples.QUERY + "\",\"runId\":\"" + Samples.RUN), line);
  }

  @Test
  void afterAnInterruptionTheSettingsAreToldAgain() throws Exception {
    AtomicInteger calls = new AtomicInteger();
    FakeCollector collector = keep(new FakeCollector((x, lines) -> calls.incrementAndGet() == 2 ? 503 : 200));
    Pipeline pipeline = start(Samples.settings("url", collector.url()));
    pipeline.offer(Entry.Kind.STARTED, Samples.started());
    collector.await(1);
    offer(pipeline, 0, 1);
    collector.await(2);
    assertTrue(pipeline.flush(60_000, 0));
    offer(pipeline, 1, 2);
    offer(pipeline, 2, 3);
    List<String> lines = collector.await(4);
    assertTrue(lines.get(0).contains("\"conf\":{"), lines.get(0));
    assertFalse(lines.get(1).contains("\"conf\":{"), lines.get(1));
    assertTrue(lines.get(2).contains("\"conf\":{"), lines.get(2));
    assertFalse(lines.get(3).contains("\"conf\":{"), lines.get(3));
  }

  @Test
  void anEventThatCannotBeRenderedCostsNoOther() throws Exception {
    FakeCollector collector = keep(FakeCollector.healthy());
    Pipeline pipeline = start(Samples.settings("url", collector.url()));
    offer(pipeline, 0, 1);
    pipeline.offer(Entry.Kind.PROGRESS, "not an event");
    offer(pipeline, 1, 2);
    List<String> lines = collector.await(2);
    assertEquals(Samples.range(0, 2), Samples.batches(lines));
    assertEquals(1, pipeline.queue().dropped());
  }

  @Test
  void theLastFlushIsShortAndCloseEndsTheThreads() throws Exception {
    FakeCollector collector = keep(new FakeCollector((x, lines) -> 200));
    collector.policy((x, lines) -> {
      collector.hang();
      return 0;
    });
    Pipeline pipeline = start(Samples.settings("url", collector.url()));
    offer(pipeline, 0, 1);
    long began = System.nanoTime();
    assertFalse(pipeline.flush(300, 100));
    assertTrue(System.nanoTime() - began < 10_000_000_000L);
    pipeline.close();
    assertTrue(pipeline.isClosed());
    pipeline.join();
  }
}
