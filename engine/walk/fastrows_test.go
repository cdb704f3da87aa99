// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"reflect"
	"testing"
	"unsafe"
)

// TestNextFramesHaveNothingOfTheOnesBefore fills every member of a frame's memory: nextFrame
// leaves the same of it as frame, except for members that its caller sets.
func TestNextFramesHaveNothingOfTheOnesBefore(t *testing.T) {
	w := &walker{}
	top := w.frame(0)
	w.frame(1)
	members := func() reflect.Value { return reflect.ValueOf(w.frames[1]).Elem() }
	for i := range members().NumField() {
		value := members().Field(i)
		m := reflect.NewAt(value.Type(), unsafe.Pointer(value.UnsafeAddr())).Elem()
		switch m.Kind() {
		case reflect.Bool:
			m.SetBool(true)
		case reflect.String:
			m.SetString("x")
		case reflect.Slice:
			m.Set(reflect.MakeSlice(m.Type(), 1, 1))
		case reflect.Pointer:
			if name := members().Type().Field(i).Name; name != "walker" {
				m.Set(reflect.New(m.Type().Elem()))
			}
		case reflect.Int:
		default:
			m.SetUint(1)
		}
	}
	n := w.nextFrame(top)
	if n.callee != top || n.index != 1 || n.walker != w {
		t.Errorf("index %d, expected the frame behind the top", n.index)
	}
	setByCallers := map[string]bool{"walker": true, "callee": true, "index": true, "pc": true, "found": true, "restsOnGuess": true}
	for i := range members().NumField() {
		m, name := members().Field(i), members().Type().Field(i).Name
		if isEmpty := m.IsZero() || m.Kind() == reflect.Slice && m.Len() == 0; !isEmpty && !setByCallers[name] {
			t.Errorf("%s is %v", name, m)
		}
	}
}
