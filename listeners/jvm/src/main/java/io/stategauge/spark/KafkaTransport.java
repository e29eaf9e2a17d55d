package io.stategauge.spark;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Produces to Kafka with the client that the job has, one message for each envelope, keyed by query.
 * This class is loaded only where Kafka is configured, so that a job without the client can use HTTP.
 */
final class KafkaTransport implements Transport {
  /** A little more than the producer itself takes to give a message up. */
  private static final long EXTRA_WAIT_MS = 5_000;

  private final String topic;
  private final long deliveryMs;
  private final Supplier<Producer<byte[], byte[]>> maker;
  private volatile Producer<byte[], byte[]> producer;

  KafkaTransport(Settings settings) {
    this(settings.kafkaTopic, properties(settings), null);
  }

  KafkaTransport(String topic, Properties properties, Supplier<Producer<byte[], byte[]>> maker) {
    this.topic = topic;
    this.deliveryMs = Long.parseLong(properties.getProperty("delivery.timeout.ms"));
    this.maker = maker != null ? maker : () -> new KafkaProducer<>(properties);
  }

  /** The producer's settings: ours where the user has set none. */
  static Properties properties(Settings settings) {
    Properties p = new Properties();
    p.setProperty("client.id", "stategauge-listener");
    p.setProperty("acks", "all");
    p.setProperty("compression.type", "gzip");
    p.setProperty("linger.ms", "5");
    p.setProperty("buffer.memory", String.valueOf(Math.max(settings.batchBytes * 2, 8L << 20)));
    p.setProperty("max.block.ms", "2000");
    p.setProperty("request.timeout.ms", "10000");
    p.setProperty("delivery.timeout.ms", "20000");
    p.putAll(settings.kafka);
    p.setProperty("key.serializer", ByteArraySerializer.class.getName());
    p.setProperty("value.serializer", ByteArraySerializer.class.getName());
    return p;
  }

  @Override
  public boolean isKeyed() {
    return true;
  }

  @Override
  public Result send(List<Message> messages) throws InterruptedException {
    List<Future<?>> acks = new ArrayList<>(messages.size());
    try {
      Producer<byte[], byte[]> p = producer();
      for (Message m : messages) {
        byte[] key = m.key.getBytes(StandardCharsets.UTF_8);
        acks.add(p.send(new ProducerRecord<>(topic, key, m.envelope)));
      }
      await(acks);
      return Result.of(Outcome.DELIVERED, "");
    } catch (ExecutionException e) {
      return judge(e.getCause());
    } catch (TimeoutException e) {
      return Result.of(Outcome.RETRY, "no acknowledgement in time");
    } catch (org.apache.kafka.common.errors.InterruptException e) {
      throw new InterruptedException();
    } catch (RuntimeException e) {
      return judge(e);
    }
  }

  @Override
  public void close() {
    Producer<byte[], byte[]> p = producer;
    if (p != null) {
      p.close(Duration.ZERO);
    }
  }

  /** Makes the producer in the sending thread: its constructor resolves names, which may take long. */
  private Producer<byte[], byte[]> producer() {
    if (producer == null) {
      producer = maker.get();
    }
    return producer;
  }

  private void await(List<Future<?>> acks) throws InterruptedException, ExecutionException, TimeoutException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(deliveryMs + EXTRA_WAIT_MS);
    for (Future<?> ack : acks) {
      ack.get(Math.max(0, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
    }
  }

  /** A message that is too large never fits; all else may pass, a missing topic or right included. */
  private static Result judge(Throwable cause) {
    String reason = Redaction.message(String.valueOf(cause));
    if (cause instanceof RecordTooLargeException && !(cause instanceof RetriableException)) {
      return Result.of(Outcome.TOO_LARGE, reason);
    }
    return Result.of(Outcome.RETRY, reason);
  }
}
