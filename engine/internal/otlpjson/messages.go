// SPDX-License-Identifier: Apache-2.0

package otlpjson

import "google.golang.org/protobuf/encoding/protowire"

// message has the fields of a message by their names in JSON.
type message map[string]field

// field is a field of a message.
type field struct {
	number protowire.Number
	isList bool
	kind   *kind  // nil: messages, or a list of strings
	name   string // of the kind of messages; "": strings
}

func one(n protowire.Number, k *kind) field     { return field{number: n, kind: k} }
func many(n protowire.Number, k *kind) field    { return field{number: n, kind: k, isList: true} }
func inner(n protowire.Number, m string) field  { return field{number: n, name: m} }
func inners(n protowire.Number, m string) field { return field{number: n, name: m, isList: true} }
func texts(n protowire.Number) field            { return field{number: n, isList: true} }

// messages has the messages of profiles (opentelemetry/proto/profiles/v1development/profiles.proto) and the ones that they
// share with other signals (common.proto, resource.proto).
var messages = map[string]message{
	"anyValue": {
		"stringValue": one(1, textKind), "boolValue": one(2, boolKind), "intValue": one(3, int64Kind), "doubleValue": one(4, doubleKind),
		"arrayValue": inner(5, "list"), "kvlistValue": inner(6, "pairs"), "bytesValue": one(7, base64Kind), "stringValueStrindex": one(8, int32Kind),
	},
	"keyValue": {"key": one(1, textKind), "value": inner(2, "anyValue"), "keyStrindex": one(3, int32Kind)},
	"entity":   {"schemaUrl": one(1, textKind), "type": one(2, textKind), "idKeys": texts(3), "descriptionKeys": texts(4)},
	"resource": {"attributes": inners(1, "keyValue"), "droppedAttributesCount": one(2, uint32Kind), "entityRefs": inners(3, "entity")},
	"scope": {
		"name": one(1, textKind), "version": one(2, textKind), "attributes": inners(3, "keyValue"), "droppedAttributesCount": one(4, uint32Kind),
	},
	"valueType": {"typeStrindex": one(1, int32Kind), "unitStrindex": one(2, int32Kind)},
	"sample": {
		"stackIndex": one(1, int32Kind), "attributeIndices": many(2, int32Kind), "linkIndex": one(3, int32Kind),
		"values": many(4, int64Kind), "timestampsUnixNano": many(5, fixed64),
	},
	"profile": {
		"sampleType": inner(1, "valueType"), "samples": inners(2, "sample"), "timeUnixNano": one(3, fixed64), "durationNano": one(4, uint64Kind),
		"periodType": inner(5, "valueType"), "period": one(6, int64Kind), "profileId": one(7, hexKind), "droppedAttributesCount": one(8, uint32Kind),
		"originalPayloadFormat": one(9, textKind), "originalPayload": one(10, base64Kind), "attributeIndices": many(11, int32Kind),
	},
	"scopeProfiles":    {"scope": inner(1, "scope"), "profiles": inners(2, "profile"), "schemaUrl": one(3, textKind)},
	"resourceProfiles": {"resource": inner(1, "resource"), "scopeProfiles": inners(2, "scopeProfiles"), "schemaUrl": one(3, textKind)},
	"mapping": {
		"memoryStart": one(1, uint64Kind), "memoryLimit": one(2, uint64Kind), "fileOffset": one(3, uint64Kind),
		"filenameStrindex": one(4, int32Kind), "attributeIndices": many(5, int32Kind),
	},
	"line": {"functionIndex": one(1, int32Kind), "line": one(2, int64Kind), "column": one(3, int64Kind)},
	"location": {
		"mappingIndex": one(1, int32Kind), "address": one(2, uint64Kind), "lines": inners(3, "line"), "attributeIndices": many(4, int32Kind),
	},
	"function": {
		"nameStrindex": one(1, int32Kind), "systemNameStrindex": one(2, int32Kind), "filenameStrindex": one(3, int32Kind), "startLine": one(4, int64Kind),
	},
	"link":      {"traceId": one(1, hexKind), "spanId": one(2, hexKind)},
	"attribute": {"keyStrindex": one(1, int32Kind), "value": inner(2, "anyValue"), "unitStrindex": one(3, int32Kind)},
	"stack":     {"locationIndices": many(1, int32Kind)},
	"dictionary": {
		"mappingTable": inners(1, "mapping"), "locationTable": inners(2, "location"), "functionTable": inners(3, "function"), "linkTable": inners(4, "link"),
		"stringTable": texts(5), "attributeTable": inners(6, "attribute"), "stackTable": inners(7, "stack"),
	},
	"request": {"resourceProfiles": inners(1, "resourceProfiles"), "dictionary": inner(2, "dictionary")},
	"list":    {"values": inners(1, "anyValue")},
	"pairs":   {"values": inners(1, "keyValue")},
}
