package object

import "debug/elf"

// HasDebugInfo says whether the object has debug information itself: a
// .debug_info with bytes in the file.
func (o *Object) HasDebugInfo() bool {
	for _, name := range []string{".debug_info", ".zdebug_info"} {
		if s := o.Section(name); s != nil && s.Type != elf.SHT_NOBITS && s.Size > 0 {
			return true
		}
	}
	return false
}
