// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	maxIgnored      = 64 // members that are named
	maxIgnoredDepth = 16 // messages within messages
)

// ignoredMembers lists the members of a message, and of the messages in it, that this package
// does not know, by the names of the members that lead there and a number: "recognises.9". A
// newer plugin sends such members. The list is sorted, and has no more than maxIgnored.
func ignoredMembers(m protoreflect.Message) []string {
	found := map[string]bool{}
	addIgnored(found, "", m, 0)
	return slices.Sorted(maps.Keys(found))
}

func addIgnored(found map[string]bool, path string, m protoreflect.Message, depth int) {
	for rest := m.GetUnknown(); len(rest) > 0 && len(found) < maxIgnored; {
		number, _, n := protowire.ConsumeField(rest)
		if n < 0 {
			return // a message that was read has none
		}
		found[fmt.Sprintf("%s%d", path, number)] = true
		rest = rest[n:]
	}
	if depth == maxIgnoredDepth {
		return
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		inner := fmt.Sprintf("%s%s.", path, field.Name())
		switch {
		case field.Kind() != protoreflect.MessageKind || field.IsMap():
		case field.IsList():
			for i := range value.List().Len() {
				addIgnored(found, inner, value.List().Get(i).Message(), depth+1)
			}
		default:
			addIgnored(found, inner, value.Message(), depth+1)
		}
		return len(found) < maxIgnored
	})
}
