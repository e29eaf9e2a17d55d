package io.stategauge.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(60)
class HttpTransportTest {
  private static List<Transport.Message> messages(String... envelopes) {
    return List.of(envelopes).stream()
        .map(e -> new Transport.Message("k", e.getBytes(StandardCharsets.UTF_8)))
        .toList();
  }

  private static Transport.Result send(Settings settings) throws IOException {
    return new HttpTransport(settings).send(messages("{\"a\":1}", "{\"b\":\"\u00e9\"}"));
  }

  @ParameterizedTest
  @CsvSource({
    "200, DELIVERED", "204, DELIVERED", "301, REFUSED", "400, REFUSED", "401, REFUSED", "403, REFUSED",
    "404, REFUSED", "408, RETRY", "413, TOO_LARGE", "415, REFUSED", "429, RETRY", "500, RETRY", "503, RETRY"
  })
  void aStatusDecidesWhatBecomesOfABatch(int status, Transport.Outcome outcome) throws Exception {
    try (FakeCollector collector = new FakeCollector((x, lines) -> {
      x.getResponseHeaders().add("Location", "http://127.0.0.1:1/");
      return status;
    })) {
      collector.body("");
      assertEquals(outcome, send(Samples.settings("url", collector.url())).outcome);
      assertEquals(1, collector.requests());
    }
  }

  @Test
  void aBodyIsGzippedNdjson() throws Exception {
    try (FakeCollector collector = FakeCollector.healthy()) {
      send(Samples.settings("url", collector.url()));
      assertEquals(List.of("{\"a\":1}", "{\"b\":\"\u00e9\"}"), collector.taken());
      Map<String, List<String>> headers = collector.headers().get(0);
      assertEquals(List.of("gzip"), headers.get("Content-encoding"));
      assertEquals(List.of("application/x-ndjson"), headers.get("Content-type"));
    }
  }

  @Test
  void rejectedEventsAreTold() throws Exception {
    try (FakeCollector collector = FakeCollector.healthy()) {
      collector.body("{\"accepted\": 0, \"duplicates\": 1, \"rejected\": [{\"index\": 0, \"error\": \"no JSON\"}]}");
      Transport.Result result = send(Samples.settings("url", collector.url()));
      assertEquals("the collector rejected 1 of 2 events", result.reason);
    }
  }

  @Test
  void connectionsAreKept() throws Exception {
    try (FakeCollector collector = FakeCollector.healthy()) {
      HttpTransport transport = new HttpTransport(Samples.settings("url", collector.url()));
      assertEquals(Transport.Outcome.DELIVERED, transport.send(messages("{}")).outcome);
      assertEquals(Transport.Outcome.DELIVERED, transport.send(messages("{}")).outcome);
    }
  }

  @Test
  void aRefusedConnectionIsRetried() throws Exception {
    int port;
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
      port = socket.getLocalPort();
    }
    assertEquals(Transport.Outcome.RETRY, send(Samples.settings("url", "http://127.0.0.1:" + port)).outcome);
  }

  @Test
  void aBlackHoleIsGivenUpAfterTheReadTimeout() throws Exception {
    try (ServerSocket hole = new ServerSocket(0, 5, InetAddress.getByName("127.0.0.1"))) {
      Settings settings = Samples.settings("url", "http://127.0.0.1:" + hole.getLocalPort(), "http.read.timeout", "100ms");
      Transport.Result result = send(settings);
      assertEquals(Transport.Outcome.RETRY, result.outcome);
      assertTrue(result.reason.contains("SocketTimeoutException"), result.reason);
    }
  }

  @Test
  void anEndlessAnswerIsGivenUp() throws Exception {
    try (ServerSocket server = new ServerSocket(0, 5, InetAddress.getByName("127.0.0.1"))) {
      Thread endless = new Thread(() -> talkForEver(server));
      endless.setDaemon(true);
      endless.start();
      Transport.Result result = send(Samples.settings("url", "http://127.0.0.1:" + server.getLocalPort()));
      assertEquals(Transport.Outcome.RETRY, result.outcome);
      assertTrue(result.reason.contains("too long"), result.reason);
    }
  }

  private static void talkForEver(ServerSocket server) {
    try (Socket socket = server.accept()) {
      socket.getOutputStream().write("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n".getBytes());
      while (true) {
        socket.getOutputStream().write(new byte[1024]);
      }
    } catch (IOException e) {
      // The other end hung up, as it should.
    }
  }

  @Test
  void theHeaderFileIsSentAndReadAgainWhenItChanges(@TempDir Path dir) throws Exception {
    Path file = dir.resolve("headers");
    Files.writeString(file, "# who we are\nAuthorization: Basic Zm9vOmJhcg==\n\nX-Team: payments\n");
    try (FakeCollector collector = FakeCollector.healthy()) {
      HttpTransport transport = new HttpTransport(Samples.settings("url", collector.url(), "header.file", file.toString()));
      transport.send(messages("{}"));
      Files.writeString(file, "Authorization: Bearer rotated-token\n");
      transport.send(messages("{}"));
      assertEquals(List.of("Basic Zm9vOmJhcg=="), collector.headers().get(0).get("Authorization"));
      assertEquals(List.of("payments"), collector.headers().get(0).get("X-team"));
      assertEquals(List.of("Bearer rotated-token"), collector.headers().get(1).get("Authorization"));
      assertFalse(collector.headers().get(1).containsKey("X-team"));
    }
  }

  @ParameterizedTest
  @CsvSource({"Authorization Basic s3cret", "'Bad Name: s3cret'", "'X: s3cret\u0001'"})
  void aBrokenHeaderFileIsReportedWithoutItsContent(String line, @TempDir Path dir) throws Exception {
    Path file = dir.resolve("headers");
    Files.writeString(file, "X-Good: 1\n" + line + "\n");
    try (FakeCollector collector = FakeCollector.healthy()) {
      Transport.Result result = send(Samples.settings("url", collector.url(), "header.file", file.toString()));
      assertEquals(Transport.Outcome.RETRY, result.outcome);
      assertTrue(result.reason.contains("line 2: not a header line"), result.reason);
      assertFalse(result.reason.contains("s3cret"), result.reason);
      assertEquals(0, collector.requests());
    }
  }

  @Test
  void theTokenIsSentAsABearer() throws Exception {
    try (FakeCollector collector = FakeCollector.healthy()) {
      send(Samples.settings("url", collector.url(), "token", "t0ken"));
      assertEquals(List.of("Bearer t0ken"), collector.headers().get(0).get("Authorization"));
    }
  }

  @ParameterizedTest
  @CsvSource({"0, 0", "7, 7000", "' 12 ', 12000", "999999999, 300000", "-5, 0", "soon, 0", "'', 0"})
  void retryAfterIsBoundedAndNeverABurden(String header, long expectedMs) {
    assertEquals(expectedMs, HttpTransport.retryAfterMs(header, 0));
  }

  @Test
  void retryAfterMayBeADate() {
    long now = 1_795_939_200_000L;
    String date = DateTimeFormatter.RFC_1123_DATE_TIME.format(Instant.ofEpochMilli(now + 9_000).atZone(ZoneOffset.UTC));
    assertEquals(9_000, HttpTransport.retryAfterMs(date, now));
    assertEquals(0, HttpTransport.retryAfterMs(date, now + 60_000));
    assertEquals(0, HttpTransport.retryAfterMs(null, now));
  }
}
