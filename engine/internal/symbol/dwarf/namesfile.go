// SPDX-License-Identifier: Apache-2.0

package dwarf

import "path"

// NamesFile reports whether a line table has a source file of an absolute path, in which "." and
// ".." do not count. Tables that cannot be read are left out, and are problems.
func (r *Reader) NamesFile(name string) (has bool, err error) {
	name = path.Clean(name)
	err = r.protect(func() error {
		seen := map[*lineTable]bool{}
		for _, part := range r.everySequence() {
			if seen[part.table] {
				continue
			}
			seen[part.table] = true
			for number := range part.table.files {
				if has = path.Clean(part.table.fileName(uint64(number), part.unit.compDir).path) == name; has {
					return nil
				}
			}
		}
		return nil
	})
	return has, err
}
