// SPDX-License-Identifier: Apache-2.0

package object

import (
	"hash/crc32"
	"strings"
)

// DebugLink returns the members of .gnu_debuglink: the base name of the separate debug file, and
// the CRC-32 of its bytes. A name with a slash is none.
func (o *Object) DebugLink() (name string, crc uint32, ok bool) {
	b, _, ok := o.sectionData(".gnu_debuglink")
	if !ok {
		return "", 0, false
	}
	err := Guard(func() error {
		name = cString(b)
		end := alignUp(uint64(len(name))+1, 4)
		field, there := slice(b, end, 4)
		ok = there && name != "" && name != "." && name != ".." && !strings.Contains(name, "/")
		if ok {
			crc = o.header.order.Uint32(field)
		}
		return nil
	})
	if err != nil || !ok {
		return "", 0, false
	}
	return name, crc, true
}

// crc returns the CRC-32 that .gnu_debuglink of another file would have for this one.
func (o *Object) crc() (sum uint32, err error) {
	err = Guard(func() error {
		sum = crc32.ChecksumIEEE(o.data)
		return nil
	})
	return sum, err
}
