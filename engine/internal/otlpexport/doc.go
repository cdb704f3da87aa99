// SPDX-License-Identifier: Apache-2.0

// Package otlpexport sends profiles to a collector of OpenTelemetry, by the OTLP
// protocol: over gRPC, or over HTTP with binary messages
// (opentelemetry.io/docs/specs/otlp). Both compress by gzip.
//
// If a collector does not answer, or is overloaded, the request is repeated a few times, after a
// pause that the collector may set. Rejected profiles are reported, and never sent again. Errors
// name the collector without the secrets that its URL may have.
package otlpexport
