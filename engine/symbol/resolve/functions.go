package resolve

import "github.com/unwindd/unwindd/engine/symbol"

// Functions returns all functions that the symbols name, by address, one name
// for each.
func (r *Resolver) Functions() []symbol.Symbol { return r.symbols().Functions() }
