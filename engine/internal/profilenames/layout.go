// SPDX-License-Identifier: Apache-2.0

package profilenames

import "google.golang.org/protobuf/encoding/protowire"

// Format is the format of a profile.
type Format int

// The formats.
const (
	// OTLP is a message ProfilesData or ExportProfilesServiceRequest, which have the same fields.
	OTLP Format = iota
	// Pprof is a Profile of profile.proto that is not packed.
	Pprof
)

// table is a table of the dictionary.
type table int

const (
	mappings table = iota
	locations
	functions
	texts
	attributes
	tables // how many there are
)

// layout is where a format has the tables, and how its messages differ.
type layout struct {
	fields [tables]protowire.Number // 0: the format has no such table
	names  [tables]string
	shift  protowire.Number // 1: messages have a number of their own in field 1
	// mapping, function and lines are names of fields of locations and mappings, for errors.
	mapping, function, lines string
}

// layouts are the layouts of the formats.
var layouts = [...]layout{
	OTLP: {
		fields:  [tables]protowire.Number{mappings: 1, locations: 2, functions: 3, texts: 5, attributes: 6},
		names:   [tables]string{mappings: "mapping_table", locations: "location_table", functions: "function_table", texts: "string_table", attributes: "attribute_table"},
		mapping: ".mapping_index", lines: ".lines", function: ".lines.function_index",
	},
	Pprof: {
		fields:  [tables]protowire.Number{mappings: 3, locations: 4, functions: 5, texts: 6},
		names:   [tables]string{mappings: "mapping", locations: "location", functions: "function", texts: "string_table"},
		shift:   1,
		mapping: ".mapping_id", lines: ".line", function: ".line.function_id",
	},
}

// The fields of the messages, in pprof's format one more.
const (
	ownNumber protowire.Number = 1 // pprof's id

	mappingStart      protowire.Number = 1
	mappingLimit      protowire.Number = 2
	mappingOffset     protowire.Number = 3
	mappingFile       protowire.Number = 4
	mappingAttributes protowire.Number = 5 // pprof: the build ID

	locationMapping    protowire.Number = 1
	locationAddress    protowire.Number = 2
	locationLines      protowire.Number = 3
	locationAttributes protowire.Number = 4 // pprof has none

	functionName   protowire.Number = 1
	functionSystem protowire.Number = 2
	functionFile   protowire.Number = 3
	functionStart  protowire.Number = 4
)

// The fields of messages that are equal in both formats, and of messages that one alone has.
const (
	dictionary protowire.Number = 2 // of ProfilesData

	lineFunction protowire.Number = 1
	lineLine     protowire.Number = 2
	lineColumn   protowire.Number = 3

	attributeKey   protowire.Number = 1
	attributeValue protowire.Number = 2

	anyText     protowire.Number = 1 // of AnyValue
	anyStrindex protowire.Number = 8

	hasFunctions protowire.Number = 7 // of pprof's Mapping
	hasFiles     protowire.Number = 8
	hasLines     protowire.Number = 9
	hasInlines   protowire.Number = 10
)

// The attributes of OpenTelemetry's conventions that tell what a frame is in.
const (
	keyFrameType = "profile.frame.type"
	keyBuildID   = "process.executable.build_id."
	keyGNU       = keyBuildID + "gnu"
	keyGo        = keyBuildID + "go"
	keyHash      = keyBuildID + "htlhash"
)
