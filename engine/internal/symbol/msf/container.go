// SPDX-License-Identifier: Apache-2.0

package msf

// Container returns the container that the stream is in.
func (s *Stream) Container() *File { return s.file }
