package io.stategauge.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SettingsTest {
  private static Settings of(String... pairs) {
    Map<String, String> conf = new HashMap<>();
    conf.put("spark.app.name", "other");
    for (int i = 0; i < pairs.length; i += 2) {
      conf.put("spark.stategauge." + pairs[i], pairs[i + 1]);
    }
    return new Settings(conf);
  }

  @Test
  void theDefaultsAreAsDocumented() {
    Settings s = of("url", "http://stategauge:9980");
    assertEquals("http://stategauge:9980/api/v1/events", s.url.toString());
    assertEquals(10_000, s.queueEvents);
    assertEquals(64L << 20, s.queueBytes);
    assertEquals(200, s.batchEvents);
    assertEquals(2L << 20, s.batchBytes);
    assertEquals(1_000, s.flushMs);
    assertEquals(30_000, s.heartbeatMs);
    assertEquals(5_000, s.stopMs);
    assertEquals(3_000, s.connectTimeoutMs);
    assertEquals(10_000, s.readTimeoutMs);
    assertNull(s.token);
    assertFalse(s.debug);
    assertEquals(List.of(), s.faults);
  }

  @ParameterizedTest
  @CsvSource({
    "http://h, http://h/api/v1/events", "https://h:1/, https://h:1/api/v1/events",
    "http://h/proxy/events?team=a, http://h/proxy/events?team=a", "http://h?team=a, http://h/api/v1/events"
  })
  void theUsualPathIsAddedWhereNoneIsGiven(String url, String expected) {
    assertEquals(expected, of("url", url).url.toString());
  }

  @ParameterizedTest
  @CsvSource({"250ms, 250", "3, 3000", "3s, 3000", "2m, 120000", "2min, 120000", "' 1 H ', 3600000"})
  void timesHaveUnits(String text, long expectedMs) {
    Settings s = of("url", "http://h", "flush.interval", text);
    assertEquals(expectedMs, s.flushMs);
    assertEquals(List.of(), s.faults);
  }

  @ParameterizedTest
  @CsvSource({"100000, 100000", "128k, 131072", "3MB, 3145728", "1g, 1073741824"})
  void sizesHaveUnits(String text, long expected) {
    assertEquals(expected, of("url", "http://h", "queue.bytes", text).queueBytes);
  }

  @ParameterizedTest
  @CsvSource({
    "queue.size, 0", "queue.size, -1", "queue.size, many", "queue.size, 5k", "queue.bytes, 1", "queue.bytes, 999999999g",
    "batch.size, 0", "flush.interval, 1 fortnight", "heartbeat.interval, 1ms", "stop.timeout, 1h", "http.read.timeout, 0"
  })
  void aValueThatCannotHoldIsReportedAndTheDefaultHolds(String key, String value) {
    Settings s = of("url", "http://h", key, value);
    assertEquals(1, s.faults.size(), s.faults.toString());
    assertTrue(s.faults.get(0).startsWith("spark.stategauge." + key + " (" + value + ") must be"), s.faults.get(0));
    assertTrue(s.isUsable());
    assertEquals(10_000, s.queueEvents);
    assertEquals(1_000, s.flushMs);
  }

  @ParameterizedTest
  @CsvSource({"ftp://h", "stategauge:9980", "'http://a b'", "http://user:s3cret@h", "http://", "http://u:s3cret@h:x"})
  void anAddressThatCannotBeUsedIsReportedWithoutItsText(String url) {
    Settings s = of("url", url);
    assertFalse(s.isUsable());
    assertEquals(1, s.faults.size());
    assertFalse(s.faults.get(0).contains("s3cret"), s.faults.get(0));
  }

  @Test
  void nothingSetIsReported() {
    Settings s = of();
    assertFalse(s.isUsable());
    assertEquals(List.of("neither spark.stategauge.url nor spark.stategauge.kafka.topic is set"), s.faults);
  }

  @Test
  void kafkaSettingsArePassedThrough() {
    Settings s = of("kafka.bootstrap.servers", "b:9092", "kafka.topic", "events", "kafka.security.protocol", "SSL", "url", "http://h");
    assertEquals("events", s.kafkaTopic);
    assertNull(s.url);
    assertEquals("SSL", s.kafka.getProperty("security.protocol"));
    assertEquals("b:9092", s.kafka.getProperty("bootstrap.servers"));
    assertFalse(s.kafka.containsKey("topic"));
    assertEquals(1, s.faults.size());
  }

  @Test
  void halfOfTheKafkaSettingsFallsBackToHttp() {
    Settings s = of("kafka.topic", "events", "url", "http://h");
    assertNull(s.kafkaTopic);
    assertTrue(s.isUsable());
    assertEquals(1, s.faults.size());
  }

  @Test
  void theDestinationTellsNoSecret() {
    assertEquals("Kafka topic t", of("kafka.topic", "t", "kafka.bootstrap.servers", "b", "kafka.sasl.jaas.config", "s3cret").destination());
    assertEquals("http://h/api/v1/events", of("url", "http://h", "token", "s3cret").destination());
  }
}
