// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxIgnored bounds how many members are remembered that this version does not know.
const maxIgnored = 64

// ignoredMembers are the members of a plugin's answers that this version does not know.
type ignoredMembers struct {
	mu   sync.Mutex
	list []string
}

// Ignored returns the members of the plugin's answers so far that this version of the protocol
// does not know, and that were ignored, as "Description member 57", sorted; at most 64. They are
// of a plugin with a higher Feature.
func (c *link) Ignored() []string {
	c.ignored.mu.Lock()
	defer c.ignored.mu.Unlock()
	return slices.Clone(c.ignored.list)
}

// lookAt notes the unknown members of an answer.
func (g *ignoredMembers) lookAt(answer any) {
	if m, ok := answer.(proto.Message); ok {
		g.look(m.ProtoReflect())
	}
}

// look notes the unknown members of a message and of those inside it.
func (g *ignoredMembers) look(m protoreflect.Message) {
	g.note(m)
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Message() == nil: // and no message has a map
		case field.IsList():
			for i := range value.List().Len() {
				g.look(value.List().Get(i).Message())
			}
		default:
			g.look(value.Message())
		}
		return true
	})
}

// note notes the unknown members of one message.
func (g *ignoredMembers) note(m protoreflect.Message) {
	for b := m.GetUnknown(); len(b) > 0; {
		number, _, n := protowire.ConsumeField(b)
		if n <= 0 {
			return // not after it was decoded
		}
		b = b[n:]
		name := fmt.Sprintf("%s member %d", m.Descriptor().Name(), number)
		g.mu.Lock()
		if i, isKnown := slices.BinarySearch(g.list, name); !isKnown && len(g.list) < maxIgnored {
			g.list = slices.Insert(g.list, i, name)
		}
		g.mu.Unlock()
	}
}
