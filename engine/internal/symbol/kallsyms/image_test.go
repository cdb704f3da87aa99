// SPDX-License-Identifier: Apache-2.0

package kallsyms

import "testing"

func TestTablesOfSymbols(t *testing.T) {
	if NewCollector("empty").Table() != nil {
		t.Error("a table without functions")
	}
	c := NewCollector("vmlinux")
	c.Add("second", 0x2000, true)
	c.Add("first", 0x1000, true)
	c.Add("data", 0x9000, false)
	table := c.Table()
	if s, ok := table.Find(0x1fff); !ok || s.Name != "first" || table.Path() != "vmlinux" {
		t.Errorf("%+v", s)
	}
	if a, ok := table.Address("data"); !ok || a != 0x9000 {
		t.Errorf("%#x", a)
	}
}
