// SPDX-License-Identifier: Apache-2.0

// Package servicepb is the gRPC service of `unwindd serve`: code generated from
// unwindd.proto. Clients in other languages are generated from that file, too.
package servicepb

//go:generate ../../../.ci/generate .
