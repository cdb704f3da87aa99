// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"os"
	"strings"

	"github.com/unwindd/unwindd/internal/host"
)

// attributePrefix begins the names of the extended attributes that systemd-coredump gives
// to the files that it writes (systemd-coredump(8)), of the user's own namespace (xattr(7)).
const attributePrefix = "user.coredump."

// maxAttributes bounds the list of names, in bytes.
const maxAttributes = 64 << 10

// attributes returns the labels that systemd-coredump attached. A file system may have
// none, and copies of a file often lack them.
func attributes(f *os.File) (list []Label) {
	names := make([]byte, maxAttributes)
	n := host.Attributes(f, names)
	value := make([]byte, maxField)
	for name := range strings.SplitSeq(string(names[:n]), "\x00") {
		if !strings.HasPrefix(name, attributePrefix) || len(list) == maxFields {
			continue
		}
		if n, ok := host.Attribute(f, name, value); ok {
			list = append(list, Label{strings.TrimPrefix(name, "user."), strings.ToValidUTF8(string(value[:n]), "\uFFFD")})
		}
	}
	return list
}
