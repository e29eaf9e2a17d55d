package io.stategauge.spark;

import java.util.regex.Pattern;

/** Takes out of texts what must not leave the application. */
final class Redaction {
  private static final String MASK = "[redacted]";

  /** The user part of an address, as in s3a://key:secret@bucket. */
  private static final Pattern USER_INFO = Pattern.compile("://[^/@\\s\"'\\\\?#]{1,512}@");

  /** What follows a name that tells of a secret, as in password=x or "token": "x". */
  private static final Pattern ASSIGNMENT =
      Pattern.compile(
          "(?i)((?:password|passwd|pwd|secret|token|credential|access[._-]?key|api[._-]?key|sas[._-]?key"
              + "|account[._-]?key)[\\w.-]{0,64}[\"'\\\\]{0,3}\\s{0,4}(?:=>|[=:])\\s{0,4}[\"'\\\\]{0,3})"
              + "[^\\s\"'\\\\,;&)}\\]]{1,4096}");

  /** What follows the name of an authentication scheme. */
  private static final Pattern SCHEME =
      Pattern.compile("(?i)\\b(bearer|basic)\\s{1,4}[A-Za-z0-9+/=._~-]{8,4096}");

  private Redaction() {}

  /** Masks the user part of addresses. Cheap where there is no address. */
  static String addresses(String text) {
    return text.contains("://") ? USER_INFO.matcher(text).replaceAll("://" + MASK + "@") : text;
  }

  /** Masks all that looks like a secret in a message written for people. */
  static String message(String text) {
    String out = ASSIGNMENT.matcher(addresses(text)).replaceAll("$1" + MASK);
    return SCHEME.matcher(out).replaceAll("$1 " + MASK);
  }
}
