// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"reflect"
)

// difference describes where two values of plain data differ: the path of the first place
// and its two values; "" where they are equal. An empty list equals no list, because the
// wire does not tell them apart.
func difference(a, b any) string {
	return differ("", reflect.ValueOf(a), reflect.ValueOf(b))
}

func differ(path string, a, b reflect.Value) string {
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			if a.IsNil() != b.IsNil() {
				return fmt.Sprintf("%s is set in one only", path)
			}
			return ""
		}
		return differ(path, a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			name := a.Type().Field(i).Name
			if path != "" {
				name = path + "." + name
			}
			if d := differ(name, a.Field(i), b.Field(i)); d != "" {
				return d
			}
		}
		return ""
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return fmt.Sprintf("%s has %d entries, expected %d", path, a.Len(), b.Len())
		}
		for i := range a.Len() {
			if d := differ(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i)); d != "" {
				return d
			}
		}
		return ""
	}
	if !a.Equal(b) {
		return fmt.Sprintf("%s is %v, expected %v", path, a, b)
	}
	return ""
}
