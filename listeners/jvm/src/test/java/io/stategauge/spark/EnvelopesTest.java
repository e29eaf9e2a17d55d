package io.stategauge.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;

class EnvelopesTest {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final FakeFacts facts = new FakeFacts();
  private final Envelopes envelopes = new Envelopes("the-sender", "eu-1", facts);

  private static JsonNode parse(byte[] body) throws Exception {
    return JSON.readTree("{" + new String(body, StandardCharsets.UTF_8));
  }

  private JsonNode body(Entry.Kind kind, Object event, long interruptions) throws Exception {
    String json = EventJson.render(kind, event);
    assertTrue(json.indexOf('\n') < 0, json);
    return parse(envelopes.body(kind, EventJson.queryId(kind, event), json, 0, interruptions));
  }

  @Test
  void anEnvelopeIsAsTheCollectorTakesIt() throws Exception {
    Entry entry = new Entry(Entry.Kind.PROGRESS, null, 1_795_939_200_123L);
    entry.seq = 7;
    entry.body = envelopes.body(entry.kind, Samples.QUERY, EventJson.render(entry.kind, Samples.progress(3)), entry.atMs, 0);
    JsonNode e = JSON.readTree(envelopes.whole(entry, 2));
    assertEquals(1, e.get("v").asInt());
    assertEquals("the-sender", e.get("sender").asText());
    assertEquals(7, e.get("seq").asInt());
    assertEquals(2, e.get("dropped").asInt());
    assertEquals("2026-11-29T08:00:00.123Z", e.get("at").asText());
    assertEquals("{\"id\":\"local-1\",\"name\":\"orders \\\"by\\\" store\",\"sparkVersion\":\"3.5.8\",\"cluster\":\"eu-1\"}", e.get("app").toString());
    assertEquals("progress", e.get("type").asText());
    assertEquals(3, e.get("event").get("batchId").asInt());
    assertEquals(1039, e.get("event").get("stateOperators").get(0).get("customMetrics").get("rocksdbFigureNumber39").asInt());
  }

  @Test
  void aStartedEventCarriesSettingsAndExecutors() throws Exception {
    JsonNode e = body(Entry.Kind.STARTED, Samples.started(), 0);
    assertEquals("{\"spark.sql.shuffle.partitions\":\"4\"}", e.get("conf").toString());
    assertEquals("{\"count\":2}", e.get("executors").toString());
    assertEquals("orders", e.get("event").get("name").asText());
  }

  @Test
  void laterEventsCarryThemOnlyAfterAChange() throws Exception {
    body(Entry.Kind.STARTED, Samples.started(), 0);
    JsonNode same = body(Entry.Kind.PROGRESS, Samples.progress(0), 0);
    assertNull(same.get("conf"));
    assertNull(same.get("executors"));
    facts.changes.incrementAndGet();
    JsonNode changed = body(Entry.Kind.PROGRESS, Samples.progress(1), 0);
    assertNull(changed.get("conf"));
    assertEquals("{\"count\":3}", changed.get("executors").toString());
    assertNull(body(Entry.Kind.PROGRESS, Samples.progress(2), 0).get("executors"));
  }

  @Test
  void aQueryThatRanBeforeTheListenerCameIsDescribedOnce() throws Exception {
    assertEquals(1, body(Entry.Kind.PROGRESS, Samples.progress(0), 0).get("conf").size());
    assertNull(body(Entry.Kind.PROGRESS, Samples.progress(1), 0).get("conf"));
    assertEquals(1, body(Entry.Kind.PROGRESS, Samples.progress(2), 1).get("conf").size());
  }

  @Test
  void queriesWhoseEndWasDroppedAreForgottenInTime() throws Exception {
    body(Entry.Kind.PROGRESS, Samples.progress(0), 0);
    for (int i = 0; i < 4096; i++) {
      envelopes.body(Entry.Kind.STARTED, UUID.randomUUID(), "{}", 0, 0);
    }
    assertEquals(1, body(Entry.Kind.PROGRESS, Samples.progress(1), 0).get("conf").size());
  }

  @Test
  void theExceptionOfAFailureIsCutAndCleaned() throws Exception {
    String text = "org.apache.spark.SparkException: cannot write to s3a://id:s3cret@bucket, password=s3cret\n\tat x" + "y".repeat(20_000);
    JsonNode e = body(Entry.Kind.TERMINATED, Samples.terminated(text), 0);
    String sent = e.get("event").get("exception").asText();
    assertTrue(sent.startsWith("org.apache.spark.SparkException: cannot write to s3a://[redacted]@bucket"), sent);
    assertTrue(sent.length() <= EventJson.MAX_EXCEPTION + 100);
    assertFalse(e.toString().contains("s3cret"));
  }

  @Test
  void aCleanEndHasNoException() throws Exception {
    JsonNode event = body(Entry.Kind.TERMINATED, Samples.terminated(null), 0).get("event");
    assertTrue(event.has("exception") && event.get("exception").isNull());
    assertTrue(event.has("errorClassOnException") && event.get("errorClassOnException").isNull());
    assertEquals(Samples.RUN.toString(), event.get("runId").asText());
  }

  @Test
  void anIdleEventHasItsTime() throws Exception {
    JsonNode event = body(Entry.Kind.IDLE, Samples.idle(), 0).get("event");
    assertEquals("2026-11-29T08:00:10.000Z", event.get("timestamp").asText());
  }

  @Test
  void theUserPartOfAnAddressInASourceIsMasked() throws Exception {
    JsonNode e = body(Entry.Kind.PROGRESS, Samples.progress(1, "FileStreamSource[s3a://id:s3cret@bucket/in]"), 0);
    assertEquals("FileStreamSource[s3a://[redacted]@bucket/in]", e.get("event").get("sources").get(0).get("description").asText());
  }

  @Test
  void oneHeartbeatHoldsAllQueriesOrOneEachByKey() throws Exception {
    UUID other = UUID.randomUUID();
    facts.started(Samples.QUERY, Samples.RUN);
    facts.started(other, Samples.RUN);
    List<Entry> one = envelopes.heartbeats(0, false);
    assertEquals(1, one.size());
    assertEquals("the-sender", one.get(0).key);
    assertEquals(2, parse(one.get(0).body).get("event").get("active").size());
    List<Entry> each = envelopes.heartbeats(0, true);
    assertEquals(2, each.size());
    for (Entry entry : each) {
      assertEquals(entry.key, parse(entry.body).get("event").get("active").get(0).get("id").asText());
    }
    facts.running.clear();
    assertEquals("{\"active\":[]}", parse(envelopes.heartbeats(0, true).get(0).body).get("event").toString());
  }
}
