package io.stategauge.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Reaches by name what differs between versions of Spark and Scala. */
final class Reflect {
  private static final Object ABSENT = new Object();
  private static final Map<String, Object> METHODS = new ConcurrentHashMap<>();

  private Reflect() {}

  /** Returns a public method of a class, null where it has none. Found methods are remembered. */
  static Method find(Class<?> type, String name, Class<?>... parameters) {
    StringBuilder key = new StringBuilder(type.getName()).append('#').append(name);
    for (Class<?> p : parameters) {
      key.append(',').append(p.getName());
    }
    Object found = METHODS.computeIfAbsent(key.toString(), k -> lookUp(type, name, parameters));
    return found == ABSENT ? null : (Method) found;
  }

  private static Object lookUp(Class<?> type, String name, Class<?>... parameters) {
    try {
      Method method = type.getMethod(name, parameters);
      method.setAccessible(true); // public methods of classes that are not
      return method;
    } catch (NoSuchMethodException | LinkageError | RuntimeException e) {
      return ABSENT;
    }
  }

  /** Calls a method without parameters by its name. */
  static Object call(Object target, String name) {
    Method method = find(target.getClass(), name);
    if (method == null) {
      throw new IllegalStateException(target.getClass().getName() + " has no method " + name);
    }
    return invoke(method, target);
  }

  /** Calls a method, a static one with null as target; its own unchecked failures come through as they are. */
  static Object invoke(Method method, Object target, Object... arguments) {
    try {
      return method.invoke(target, arguments);
    } catch (InvocationTargetException e) {
      if (e.getCause() instanceof RuntimeException) {
        throw (RuntimeException) e.getCause();
      }
      throw new IllegalStateException(method + " failed", e.getCause());
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(method + " cannot be called", e);
    }
  }

  /** Returns what a Scala option holds, null if it is empty. */
  static Object orNull(scala.Option<?> option) {
    return option.isEmpty() ? null : option.get();
  }

  /** The same for an option that came by reflection. */
  static Object orNull(Object option) {
    return orNull((scala.Option<?>) option);
  }
}
