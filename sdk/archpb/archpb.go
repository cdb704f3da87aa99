// SPDX-License-Identifier: Apache-2.0

// Package archpb is the wire protocol between the engine and plugins: the generated code
// of arch.proto, for architectures, and runtime.proto, for language runtimes. A plugin in
// Go uses package sdk; a plugin in another language is written against these files.
package archpb

//go:generate ../../.ci/generate .
