package io.stategauge.spark;

/** Writes JSON into a string builder, compact and safe to stand on one line. */
final class Json {
  private static final char[] HEX = "0123456789abcdef".toCharArray();

  private Json() {}

  /** Appends a key with its colon, after a comma unless the object has just been opened. */
  static StringBuilder key(StringBuilder out, String key) {
    char last = out.charAt(out.length() - 1);
    if (last != '{' && last != '[') {
      out.append(',');
    }
    return string(out, key).append(':');
  }

  /** Appends a member with a string value, or null for null. */
  static StringBuilder member(StringBuilder out, String key, String value) {
    return string(key(out, key), value);
  }

  /** Appends a member with a number. */
  static StringBuilder member(StringBuilder out, String key, long value) {
    return key(out, key).append(value);
  }

  /** Appends a quoted string, or null for null. */
  static StringBuilder string(StringBuilder out, String value) {
    if (value == null) {
      return out.append("null");
    }
    out.append('"');
    for (int i = 0; i < value.length(); i++) {
      character(out, value.charAt(i));
    }
    return out.append('"');
  }

  private static void character(StringBuilder out, char c) {
    if (c == '"' || c == '\\') {
      out.append('\\').append(c);
    } else if (c == '\n') {
      out.append("\\n");
    } else if (c < 0x20 || Character.isSurrogate(c) || c == 0x2028 || c == 0x2029) {
      // Escaped surrogates stay what they are, even where their partner was cut off.
      out.append("\\u").append(HEX[c >> 12]).append(HEX[c >> 8 & 15]).append(HEX[c >> 4 & 15]).append(HEX[c & 15]);
    } else {
      out.append(c);
    }
  }
}
