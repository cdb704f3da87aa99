// SPDX-License-Identifier: Apache-2.0

package kallsyms

// Collector makes a Table of symbols that are in no text file: of a kernel's image (vmlinux).
type Collector struct{ table Table }

// NewCollector begins a Table; the path is in messages.
func NewCollector(path string) *Collector { return &Collector{Table{path: path}} }

// Add adds a symbol of the kernel itself. Only functions are found by their addresses.
func (c *Collector) Add(name string, address uint64, isFunction bool) {
	if isFunction {
		c.table.symbols = append(c.table.symbols, Symbol{Name: name, Start: address})
		return
	}
	c.table.others = append(c.table.others, namedAddress{name, address})
}

// Table returns the table, to which nothing is added any more; nil where there is no function.
func (c *Collector) Table() *Table {
	if len(c.table.symbols) == 0 {
		return nil
	}
	c.table.sort()
	return &c.table
}
