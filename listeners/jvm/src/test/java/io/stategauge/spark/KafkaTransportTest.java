package io.stategauge.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class KafkaTransportTest {
  private final Settings settings =
      Samples.settings("kafka.bootstrap.servers", "b:9092", "kafka.topic", "events", "kafka.acks", "1", "kafka.value.serializer", "x");
  private final MockProducer<byte[], byte[]> producer =
      new MockProducer<>(true, new ByteArraySerializer(), new ByteArraySerializer());

  private KafkaTransport transport(String... overrides) {
    Properties p = KafkaTransport.properties(settings);
    for (int i = 0; i < overrides.length; i += 2) {
      p.setProperty(overrides[i], overrides[i + 1]);
    }
    return new KafkaTransport("events", p, () -> producer);
  }

  private static List<Transport.Message> messages(int count) {
    return Samples.range(0, count).stream()
        .map(i -> new Transport.Message("query-" + i, ("{\"n\":" + i + "}").getBytes(StandardCharsets.UTF_8)))
        .toList();
  }

  @Test
  void messagesGoOutInOrderKeyedByQuery() throws Exception {
    assertEquals(Transport.Outcome.DELIVERED, transport().send(messages(3)).outcome);
    assertEquals(3, producer.history().size());
    for (int i = 0; i < 3; i++) {
      assertEquals("events", producer.history().get(i).topic());
      assertEquals("query-" + i, new String(producer.history().get(i).key(), StandardCharsets.UTF_8));
      assertEquals("{\"n\":" + i + "}", new String(producer.history().get(i).value(), StandardCharsets.UTF_8));
    }
  }

  @Test
  void whatTheProducerCannotDoNowIsRetried() throws Exception {
    KafkaTransport transport = transport();
    producer.sendException = new TimeoutException("no metadata");
    assertEquals(Transport.Outcome.RETRY, transport.send(messages(2)).outcome);
    producer.sendException = new TopicAuthorizationException("events");
    assertEquals(Transport.Outcome.RETRY, transport.send(messages(2)).outcome);
    producer.sendException = null;
    assertEquals(Transport.Outcome.DELIVERED, transport.send(messages(2)).outcome);
  }

  @Test
  void aMessageThatNeverFitsIsSingledOut() throws Exception {
    producer.sendException = new RecordTooLargeException("2 MB");
    assertEquals(Transport.Outcome.TOO_LARGE, transport().send(messages(2)).outcome);
  }

  @Test
  void aProducerThatCannotBeMadeIsRetriedWithoutItsSecret() throws Exception {
    KafkaTransport transport = new KafkaTransport("events", KafkaTransport.properties(settings), () -> {
      throw new org.apache.kafka.common.KafkaException("bad jaas: password=\"s3cret\"");
    });
    Transport.Result result = transport.send(messages(1));
    assertEquals(Transport.Outcome.RETRY, result.outcome);
    assertEquals("org.apache.kafka.common.KafkaException: bad jaas: password=\"[redacted]\"", result.reason);
  }

  @Test
  void anAcknowledgementThatNeverComesIsGivenUp() throws Exception {
    MockProducer<byte[], byte[]> silent = new MockProducer<>(false, new ByteArraySerializer(), new ByteArraySerializer());
    Properties p = KafkaTransport.properties(settings);
    p.setProperty("delivery.timeout.ms", "-4900");
    KafkaTransport transport = new KafkaTransport("events", p, () -> silent);
    assertEquals(Transport.Outcome.RETRY, transport.send(messages(1)).outcome);
  }

  @Test
  void theUsersSettingsHoldButTheSerializersAreOurs() {
    Properties p = KafkaTransport.properties(settings);
    assertEquals("1", p.getProperty("acks"));
    assertEquals("b:9092", p.getProperty("bootstrap.servers"));
    assertEquals(ByteArraySerializer.class.getName(), p.getProperty("value.serializer"));
    assertEquals("2000", p.getProperty("max.block.ms"));
  }

  @Test
  void heartbeatsAreSpreadByKey() {
    assertTrue(transport().isKeyed());
    transport().close();
  }
}
