// SPDX-License-Identifier: Apache-2.0

// Package servicepb is what `unwindd serve` answers by gRPC: the generated code of
// unwindd.proto. Clients in other languages are generated from that file.
package servicepb

//go:generate ../../../.ci/generate .
