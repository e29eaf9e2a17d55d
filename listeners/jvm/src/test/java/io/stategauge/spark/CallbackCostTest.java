package io.stategauge.spark;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryProgressEvent;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a callback costs while the collector is well, slow, gone or silent. Printed, not judged. */
@Timeout(120)
class CallbackCostTest {
  private static final int EVENTS = 20_000;

  /** Far above any real cost: only a callback that waits for the network comes near it. */
  private static final long ABSURD_NANOS = 1_000_000_000L;

  private static void measure(String state, String url) throws Exception {
    Settings settings = Samples.settings("url", url, "queue.size", "1000", "http.read.timeout", "500ms");
    Pipeline pipeline = new Pipeline(settings, new FakeFacts(), new HttpTransport(settings), 50);
    pipeline.start();
    try {
      CallbackTimer timer = new CallbackTimer();
      List<QueryProgressEvent> events = new ArrayList<>();
      Samples.range(0, 100).forEach(i -> events.add(Samples.progress(i)));
      for (int i = 0; i < EVENTS; i++) {
        long began = System.nanoTime();
        pipeline.offer(Entry.Kind.PROGRESS, events.get(i % events.size()));
        timer.add(System.nanoTime() - began);
      }
      System.out.println("callback, collector " + state + ": " + timer + "; " + pipeline.report());
      assertTrue(timer.quantile(0.99) < ABSURD_NANOS, timer.toString());
      // What came in a burst lies in the inbox for a moment, which holds as much again.
      assertTrue(pipeline.queue().size() <= 2000);
      assertTrue(pipeline.queue().bytes() <= settings.queueBytes);
    } finally {
      pipeline.close();
      pipeline.join();
    }
  }

  @Test
  void aHealthyCollectorCostsTheQueryNothing() throws Exception {
    try (FakeCollector collector = FakeCollector.healthy()) {
      measure("healthy", collector.url());
    }
  }

  @Test
  void aSlowCollectorCostsTheQueryNothing() throws Exception {
    Object never = new Object();
    try (FakeCollector collector = new FakeCollector((x, lines) -> {
      synchronized (never) {
        never.wait(300);
      }
      return 200;
    })) {
      measure("slow", collector.url());
    }
  }

  @Test
  void aRefusingCollectorCostsTheQueryNothing() throws Exception {
    int port;
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
      port = socket.getLocalPort();
    }
    measure("refusing", "http://127.0.0.1:" + port);
  }

  @Test
  void aBlackHoleCostsTheQueryNothing() throws Exception {
    try (ServerSocket hole = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
      measure("black-holed", "http://127.0.0.1:" + hole.getLocalPort());
    }
  }
}
