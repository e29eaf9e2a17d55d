package io.stategauge.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The listener in a running Spark: what no fake can show. */
@Timeout(600)
class ListenerInSparkTest {
  private static final ObjectMapper JSON = new ObjectMapper();

  private static SparkSession session(String url) {
    return SparkSession.builder()
        .master("local[2]")
        .appName("in-spark")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.some.password", "s3cret")
        .config("spark.sql.streaming.streamingQueryListeners", StategaugeListener.class.getName())
        .config("spark.stategauge.url", url)
        .config("spark.stategauge.token", "s3cret-token")
        .config("spark.stategauge.cluster", "test")
        .config("spark.stategauge.flush.interval", "50ms")
        .config("spark.stategauge.heartbeat.interval", "1s")
        .config("spark.stategauge.debug", "true")
        .getOrCreate();
  }

  private static StreamingQuery query(SparkSession spark, String name, Path checkpoint) throws Exception {
    Dataset<Row> counts = spark.readStream().format("rate").option("numPartitions", 1).load().groupBy("value").count();
    return counts.writeStream().queryName(name).outputMode(OutputMode.Update()).format("noop")
        .option("checkpointLocation", checkpoint.toString()).start();
  }

  private static List<JsonNode> parse(List<String> lines) throws Exception {
    List<JsonNode> out = new ArrayList<>();
    for (String line : lines) {
      out.add(JSON.readTree(line));
    }
    return out;
  }

  private static List<JsonNode> only(List<JsonNode> all, String type, String id) {
    return all.stream()
        .filter(e -> e.get("type").asText().equals(type))
        .filter(e -> e.get("event").path("id").asText().equals(id))
        .toList();
  }

  @Test
  void anApplicationIsToldFromStartToEnd(@TempDir Path dir) throws Exception {
    try (FakeCollector collector = FakeCollector.healthy()) {
      SparkSession spark = session(collector.url());
      String appId = spark.sparkContext().applicationId();
      StreamingQuery first = query(spark, "first", dir.resolve("a"));
      StreamingQuery second = query(spark.newSession(), "second", dir.resolve("b"));
      while (first.lastProgress() == null || first.lastProgress().batchId() < 2 || second.lastProgress() == null) {
        collector.await(collector.taken().size() + 1);
      }
      first.stop();
      spark.stop();
      List<JsonNode> all = parse(collector.taken());
      checkStarted(only(all, "started", first.id().toString()), appId);
      checkProgress(only(all, "progress", first.id().toString()));
      checkEnd(all, first, second);
      checkNumbers(all);
      checkHeartbeats(all, first.id().toString());
      assertFalse(collector.taken().toString().contains("s3cret"));
      assertEquals(List.of("Bearer s3cret-token"), collector.headers().get(0).get("Authorization"));
    }
  }

  private static void checkStarted(List<JsonNode> started, String appId) {
    assertEquals(1, started.size());
    JsonNode e = started.get(0);
    assertEquals(appId, e.get("app").get("id").asText());
    assertEquals("in-spark", e.get("app").get("name").asText());
    assertEquals("test", e.get("app").get("cluster").asText());
    assertEquals(org.apache.spark.package$.MODULE$.SPARK_VERSION(), e.get("app").get("sparkVersion").asText());
    assertEquals("1", e.get("conf").get("spark.sql.shuffle.partitions").asText());
    assertTrue(e.get("conf").get("spark.sql.streaming.stateStore.providerClass").asText().endsWith("HDFSBackedStateStoreProvider"));
    e.get("conf").fieldNames().forEachRemaining(key -> assertTrue(SparkFacts.CONF.contains(key), key));
    assertEquals(1, e.get("executors").get("count").asInt());
    assertEquals(2, e.get("executors").get("cores").asInt());
    assertEquals(0, e.get("executors").get("losses").asInt());
    assertTrue(e.get("executors").get("memoryBytes").asLong() > 0);
  }

  private static void checkProgress(List<JsonNode> progress) {
    assertTrue(progress.size() >= 3, "progress events: " + progress.size());
    for (int i = 0; i < progress.size(); i++) {
      assertEquals(i, progress.get(i).get("event").get("batchId").asInt());
    }
  }

  private static void checkEnd(List<JsonNode> all, StreamingQuery first, StreamingQuery second) {
    assertEquals(1, only(all, "terminated", first.id().toString()).size());
    assertEquals(1, only(all, "started", second.id().toString()).size());
  }

  /** The listeners of both sessions are one sender. */
  private static void checkNumbers(List<JsonNode> all) {
    Set<String> senders = new LinkedHashSet<>();
    for (int i = 0; i < all.size(); i++) {
      senders.add(all.get(i).get("sender").asText());
      assertEquals(i + 1, all.get(i).get("seq").asInt());
      assertEquals(0, all.get(i).get("dropped").asInt());
    }
    assertEquals(1, senders.size());
  }

  private static void checkHeartbeats(List<JsonNode> all, String id) {
    boolean seen = false;
    for (JsonNode e : all) {
      for (JsonNode active : e.get("event").path("active")) {
        seen |= active.get("id").asText().equals(id) && active.get("triggerActive").isBoolean();
      }
    }
    assertTrue(seen, "no heartbeat names the query");
  }

  @Test
  void lossesAreTheExecutorsThatNobodyAskedToGo() {
    assertTrue(ExecutorWatch.isIntended("Executor killed by driver."));
    assertTrue(ExecutorWatch.isIntended("Executor decommission."));
    assertFalse(ExecutorWatch.isIntended("Remote RPC client disassociated. Likely due to containers exceeding thresholds"));
    assertFalse(ExecutorWatch.isIntended("worker lost"));
    assertFalse(ExecutorWatch.isIntended(null));
  }
}
