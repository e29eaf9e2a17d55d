// Package compose proves, without a container engine, that what lies around the
// binary fits together: the compose file, the image, and the files of Prometheus,
// Alertmanager and Grafana. It holds tests only.
package compose
