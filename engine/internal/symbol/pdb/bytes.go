// SPDX-License-Identifier: Apache-2.0

package pdb

import "github.com/unwindd/unwindd/engine/internal/symbol/msf"

// fields are the parts of a record, of a header or of a program of annotations.
type fields struct{ msf.Fields }

func fieldsOf(b []byte) fields { return fields{msf.Fields{Rest: b}} }

// readAt reads n bytes of a stream.
func readAt(s *msf.Stream, offset, n uint32) (fields, error) {
	b, err := s.Bytes(offset, n)
	return fieldsOf(b), err
}
