package io.stategauge.spark;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.zip.GZIPInputStream;

/** A collector on loopback that answers as it is told and keeps what it took. */
final class FakeCollector implements AutoCloseable {
  /** Decides the answer to one request: a status, 0 for none at all. */
  interface Policy {
    int answer(HttpExchange exchange, List<String> lines) throws Exception;
  }

  private final HttpServer server;
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final CountDownLatch closing = new CountDownLatch(1);
  private final List<String> taken = new ArrayList<>();
  private final List<Map<String, List<String>>> headers = new ArrayList<>();
  private volatile Policy policy;
  private volatile String body = "{}";
  private int requests;

  FakeCollector(Policy policy) throws IOException {
    this(policy, 0);
  }

  FakeCollector(Policy policy, int port) throws IOException {
    this.policy = policy;
    server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), port), 50);
    server.setExecutor(threads);
    server.createContext("/api/v1/events", this::handle);
    server.start();
  }

  static FakeCollector healthy() throws IOException {
    return new FakeCollector((x, lines) -> 200);
  }

  void policy(Policy now) {
    policy = now;
  }

  void body(String now) {
    body = now;
  }

  int port() {
    return server.getAddress().getPort();
  }

  String url() {
    return "http://127.0.0.1:" + port();
  }

  URI uri() {
    return URI.create(url() + "/api/v1/events");
  }

  /** Waits until the collector is closed: what a black hole does. */
  void hang() throws InterruptedException {
    closing.await();
  }

  private void handle(HttpExchange x) throws IOException {
    try (x) {
      List<String> lines = lines(x);
      synchronized (this) {
        requests++;
        headers.add(x.getRequestHeaders());
        notifyAll();
      }
      int status = policy.answer(x, lines);
      if (status == 0) {
        return;
      }
      keep(status, lines);
      byte[] answer = body.getBytes(StandardCharsets.UTF_8);
      x.sendResponseHeaders(status, answer.length);
      x.getResponseBody().write(answer);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (Exception e) {
      throw new UncheckedIOException(new IOException(e));
    }
  }

  private synchronized void keep(int status, List<String> lines) {
    if (status == 200) {
      taken.addAll(lines);
      notifyAll();
    }
  }

  private static List<String> lines(HttpExchange x) throws IOException {
    byte[] raw = x.getRequestBody().readAllBytes();
    byte[] plain = new GZIPInputStream(new ByteArrayInputStream(raw)).readAllBytes();
    return List.of(new String(plain, StandardCharsets.UTF_8).split("\n"));
  }

  synchronized List<String> taken() {
    return new ArrayList<>(taken);
  }

  synchronized int requests() {
    return requests;
  }

  synchronized List<Map<String, List<String>>> headers() {
    return new ArrayList<>(headers);
  }

  /** Waits until so many events were taken, and returns all of them. */
  List<String> await(int count) {
    until(() -> taken.size() >= count);
    return taken();
  }

  void awaitRequests(int count) {
    until(() -> requests >= count);
  }

  private synchronized void until(BooleanSupplier condition) {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (!condition.getAsBoolean()) {
      long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
      if (left <= 0) {
        throw new AssertionError("gave up waiting: " + taken.size() + " events in " + requests + " requests");
      }
      try {
        wait(left);
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
    }
  }

  @Override
  public void close() {
    closing.countDown();
    server.stop(0);
    threads.shutdownNow();
  }
}
