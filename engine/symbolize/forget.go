// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"bytes"

	"github.com/unwindd/unwindd/engine/internal/profilenames"
)

// Forget has the files of a build ID looked for anew: there are others by now. Nothing that came from
// them may be used any more.
func (s *Symbolizer) Forget(id []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, f := range s.files {
		if key == buildIDKey(id) || f.file != nil && bytes.Equal(f.file.Object.BuildID(), id) {
			if f.file != nil {
				_ = f.file.close() // it was only read
			}
			delete(s.files, key)
		}
	}
	s.profiles.mu.Lock()
	defer s.profiles.mu.Unlock()
	s.profiles.forget(id)
}

// buildIDKey returns the key of a build ID's file.
func buildIDKey(id []byte) string { return "build-id:" + string(id) }

// forget forgets the files of a build ID, also that there is none.
func (k *profileFiles) forget(id []byte) {
	k.under.Lock()
	defer k.under.Unlock()
	for key, f := range k.byFile {
		if is, _ := identityOf(&profilenames.Mapping{GNU: key.gnu, Go: key.golang}); bytes.Equal(is, id) {
			_ = f.close() // it was only read
			delete(k.byFile, key)
		}
	}
}
