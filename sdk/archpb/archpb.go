// SPDX-License-Identifier: Apache-2.0

// Package archpb is the wire protocol between the engine and an architecture
// plugin: the generated code of arch.proto. A plugin in Go uses package sdk; a
// plugin in another language is written against arch.proto.
package archpb

//go:generate ../../.ci/generate .
