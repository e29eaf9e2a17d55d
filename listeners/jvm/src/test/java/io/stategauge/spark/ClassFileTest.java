package io.stategauge.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/** What the jar's classes must be, so that one jar serves all versions. */
class ClassFileTest {
  private static final int JAVA_8 = 52;

  private static List<Path> classFiles() throws IOException, URISyntaxException {
    Path root = Path.of(StategaugeListener.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    try (Stream<Path> files = Files.walk(root)) {
      return files.filter(f -> f.toString().endsWith(".class")).collect(Collectors.toList());
    }
  }

  @Test
  void allClassesRunOnJava8() throws Exception {
    List<Path> files = classFiles();
    assertTrue(files.size() > 15, "classes: " + files.size());
    for (Path file : files) {
      try (InputStream in = Files.newInputStream(file)) {
        DataInputStream data = new DataInputStream(in);
        assertEquals(0xCAFEBABE, data.readInt());
        data.readUnsignedShort();
        assertEquals(JAVA_8, data.readUnsignedShort(), file.toString());
      }
    }
  }

  @Test
  void noClassNamesAScalaCollection() throws Exception {
    for (Path file : classFiles()) {
      String bytes = new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1);
      assertFalse(bytes.contains("scala/collection"), file.toString());
    }
  }

  @Test
  void onlyTheKafkaTransportNeedsKafka() throws Exception {
    for (Path file : classFiles()) {
      String bytes = new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1);
      boolean kafka = file.getFileName().toString().startsWith("KafkaTransport");
      assertTrue(kafka || !bytes.contains("org/apache/kafka"), file.toString());
    }
  }

  @Test
  void sparkFindsTheConstructorsThatItLooksFor() throws Exception {
    List<Class<?>[]> signatures = new ArrayList<>();
    for (Constructor<?> c : StategaugeListener.class.getConstructors()) {
      signatures.add(c.getParameterTypes());
    }
    assertEquals(2, signatures.size());
    assertTrue(signatures.stream().anyMatch(s -> s.length == 1 && s[0] == SparkConf.class));
  }

  @Test
  void allCallbacksArePublicOverrides() {
    List<String> names = new ArrayList<>();
    for (Method m : StategaugeListener.class.getDeclaredMethods()) {
      if (m.getName().startsWith("onQuery")) {
        assertTrue(((Executable) m).toString().startsWith("public void"), m.toString());
        names.add(m.getName());
      }
    }
    assertEquals(4, names.size());
  }

  @Test
  void aListenerWithoutSettingsDoesNothingAndFailsNever() {
    StategaugeListener listener = new StategaugeListener(new SparkConf(false));
    listener.onQueryStarted(Samples.started());
    listener.onQueryProgress(Samples.progress(0));
    listener.onQueryIdle(Samples.idle());
    listener.onQueryTerminated(Samples.terminated("x"));
    StategaugeListener broken = new StategaugeListener(new SparkConf(false).set("spark.stategauge.url", "http://a b"));
    broken.onQueryProgress(Samples.progress(0));
  }
}
