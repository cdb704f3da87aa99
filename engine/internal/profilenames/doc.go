// SPDX-License-Identifier: Apache-2.0

// Package profilenames gives names to frames in the bytes of a profile, of OpenTelemetry or of pprof.
//
// Only the tables of mappings, locations, functions, texts and attributes are read. Samples, resources and
// whatever is unknown are passed on byte for byte, as are locations that have names. Read finds the frames without
// names, Answer takes lines for them, and its WriteTo writes the profile again.
//
// Both formats have the same messages; pprof's have a number of their own before the other fields, by which
// others refer to them, where OpenTelemetry's are referred to by their index.
package profilenames
