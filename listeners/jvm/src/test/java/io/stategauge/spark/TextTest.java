package io.stategauge.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** JSON, redaction, back-off and the quiet log. */
class TextTest {
  @ParameterizedTest
  @ValueSource(strings = {"", "plain", "a\"b\\c", "line\nbreak\r\t", "\u0000\u001f", "\u2028", "\u00e9\u4e2d", "\ud83d\ude00", "</script>"})
  void stringsSurviveJson(String text) throws Exception {
    String json = Json.string(new StringBuilder(), text).toString();
    assertTrue(json.indexOf('\n') < 0);
    assertEquals(text, new ObjectMapper().readValue(json, String.class));
  }

  @Test
  void aLoneSurrogateIsEscaped() {
    assertEquals("\"\\ud83d\"", Json.string(new StringBuilder(), "\ud83d").toString());
  }

  @Test
  void membersAreSeparated() {
    StringBuilder out = new StringBuilder("{");
    Json.member(out, "a", 1);
    Json.member(out, "b", null);
    Json.key(out, "c").append('[');
    Json.key(out.append('{'), "d").append("2}]}");
    assertEquals("{\"a\":1,\"b\":null,\"c\":[{\"d\":2}]}", out.toString());
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
    "s3a://AKIA:s3cret@bucket/x | s3a://[redacted]@bucket/x",
    "jdbc:postgresql://user:s3cret@db:5432/x | jdbc:postgresql://[redacted]@db:5432/x",
    "password=s3cret; x | password=[redacted]; x",
    "{\"aws.secretKey\": \"s3cret\"} | {\"aws.secretKey\": \"[redacted]\"}",
    "fs.azure.account.key.a: s3cret | fs.azure.account.key.a: [redacted]",
    "sasl.jaas.config=x password=\"s3cret\" | sasl.jaas.config=x password=\"[redacted]\"",
    "Authorization: Bearer abcdefgh.s3cret | Authorization: Bearer [redacted]",
    "api_key=>s3cret) | api_key=>[redacted])",
    "https://host/path@2x | https://host/path@2x",
    "User class threw: Task failed | User class threw: Task failed",
  })
  void secretsInMessagesAreMasked(String text, String expected) {
    assertEquals(expected, Redaction.message(text));
  }

  @Test
  void redactionIsQuickOnHostileText() {
    String hostile = "password".repeat(20_000) + "://" + "a".repeat(200_000);
    long began = System.nanoTime();
    Redaction.message(hostile);
    assertTrue(System.nanoTime() - began < 20_000_000_000L);
  }

  @Test
  void backOffDoublesUpToItsCapAndLessWithJitter() {
    Backoff full = new Backoff(500, 30_000, () -> 0);
    List<Long> delays = new ArrayList<>();
    for (int i = 0; i < 9; i++) {
      delays.add(full.next());
    }
    assertEquals(List.of(500L, 1000L, 2000L, 4000L, 8000L, 16000L, 30000L, 30000L, 30000L), delays);
    assertTrue(full.reset());
    assertTrue(!full.reset());
    assertEquals(500, full.next());
    assertEquals(251, new Backoff(500, 30_000, () -> 0.999).next());
    Backoff long1 = new Backoff(500, 30_000, () -> 0);
    for (int i = 0; i < 100; i++) {
      long1.next();
    }
    assertEquals(30_000, long1.next());
  }

  @Test
  void theLogSpeaksOnceAMinuteAndTellsWhatItKeptBack() {
    AtomicLong now = new AtomicLong(1_000_000);
    List<String> lines = new ArrayList<>();
    QuietLog log = new QuietLog(lines::add, now::get);
    log.say("a");
    log.say("b");
    now.addAndGet(59_999);
    log.say("c");
    now.addAndGet(1);
    log.say("d");
    assertEquals(List.of("a", "d (2 more lines kept back)"), lines);
  }

  @Test
  void quantilesComeFromTheNewestCalls() {
    CallbackTimer timer = new CallbackTimer();
    assertEquals(0, timer.quantile(0.99));
    for (int i = 0; i < 10_000; i++) {
      timer.add(i < 1808 ? 1_000_000 : i % 100);
    }
    assertEquals(50, timer.quantile(0.5));
    assertEquals(99, timer.quantile(1));
    assertTrue(timer.toString().startsWith("10000 calls"), timer.toString());
  }
}
