// SPDX-License-Identifier: Apache-2.0

// Package otlpexport sends profiles to a collector of OpenTelemetry, by the OTLP
// protocol: over gRPC, or over HTTP with binary messages
// (opentelemetry.io/docs/specs/otlp). Both compress by gzip.
//
// A collector that does not answer, or says that it is overloaded, is asked again a few
// times, after a pause that it may name. What it rejects is reported, and never sent
// again. Errors name the collector without the secrets that its URL may have.
package otlpexport
