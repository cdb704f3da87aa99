// SPDX-License-Identifier: Apache-2.0

package dwarf

// UnitsNamed are the units whose DW_AT_name is name, in the order of the file: in Go the
// name is the path of a package. All units have the name "". A unit that cannot be read is a
// problem.
func (r *Reader) UnitsNamed(name string) (list []Unit, err error) {
	err = r.protect(func() error {
		for _, u := range r.everyUnit() {
			if u.isType() {
				continue
			}
			b, err := u.open()
			if err == nil && name != "" && b.name != name {
				continue
			}
			if err == nil {
				b, err = r.splitOf(b)
			}
			if err != nil {
				r.failedUnit(u, err)
				continue
			}
			list = append(list, Unit{b})
		}
		return nil
	})
	return list, err
}

// StaticAddress is the ELF virtual address of a variable of static storage; ok is false
// where its DW_AT_location describes another place, or none.
func (e Entry) StaticAddress() (address uint64, ok bool) { return e.fixedAddress() }
