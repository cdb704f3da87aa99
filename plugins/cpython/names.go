// SPDX-License-Identifier: Apache-2.0

package cpython

import "fmt"

// names returns the names of threads by pthread_self, as the module threading has them.
func (r *reader) names(threads []*thread) map[*thread]string {
	names := map[*thread]string{}
	byInterpreter := map[*interpreter]map[uint64]string{}
	for _, t := range threads {
		known, isRead := byInterpreter[t.interpreter]
		if !isRead {
			known = r.namesOf(t.interpreter)
			byInterpreter[t.interpreter] = known
		}
		if name := known[t.threadID]; name != "" {
			names[t] = name
		}
	}
	return names
}

// maxThreadName bounds the name of a thread in characters.
const maxThreadName = 256

// namesOf returns the names of an interpreter's threads by pthread_self; what cannot be read is left
// out.
func (r *reader) namesOf(i *interpreter) map[uint64]string {
	active := r.activeOf(i)
	if active == 0 {
		return nil
	}
	list, err := r.dict(active, maxThreads)
	if err != nil {
		return nil
	}
	var addresses []uint64
	for _, e := range list {
		addresses = append(addresses, e.key, e.value)
	}
	r.mem.Prefetch(addresses, 128)
	r.prefetchAttributes(list)
	names := make(map[uint64]string, len(list))
	for _, e := range list {
		id, err := r.smallInt(e.key)
		if err != nil {
			continue
		}
		name, err := r.attribute(e.value, "_name")
		if err != nil {
			continue
		}
		if text, err := r.text(name, maxThreadName); err == nil {
			names[id] = text
		}
	}
	return names
}

// prefetchAttributes reads where the values of a dict have their attributes, in few requests.
func (r *reader) prefetchAttributes(list []entry) {
	var stores, parts []uint64
	for _, e := range list {
		if store := r.attributeStore(e.value); store != 0 {
			stores = append(stores, store)
		}
	}
	r.mem.Prefetch(stores, 256)
	for _, store := range stores {
		for _, member := range []offset{r.layout.dict.keys, r.layout.dict.values} {
			if part, err := r.pointer(store, member); err == nil && checkPointer(part) == nil {
				parts = append(parts, part)
			}
		}
	}
	r.mem.Prefetch(parts, 1024)
}

// activeOf returns threading._active of an interpreter, a dict of its threads; 0 where it is not
// there. It stays the same as long as the module does.
func (r *reader) activeOf(i *interpreter) uint64 {
	modules, err := r.pointer(i.address, r.layout.interpreter.modules)
	if err != nil || modules == 0 {
		return 0
	}
	key := activeKey{i.address, modules}
	if active := r.active.get(key); active != 0 && r.expect(active, classIsDict, "dict") == nil {
		return active
	}
	active, err := r.moduleValue(modules, "threading", "_active")
	if err != nil {
		return 0
	}
	r.active.put(key, active)
	return active
}

// moduleValue returns a variable of a module, by sys.modules.
func (r *reader) moduleValue(modules uint64, module, name string) (uint64, error) {
	object, err := r.lookup(modules, module)
	if err != nil {
		return 0, err
	}
	c, err := r.class(object)
	if err != nil {
		return 0, err
	}
	if c.name != "module" && !r.isDerived(c, "module") {
		return 0, fmt.Errorf("sys.modules[%q] at %#x is a %s, expected a module", module, object, c.name)
	}
	variables, err := r.pointer(object, r.layout.other.moduleDict)
	if err != nil {
		return 0, err
	}
	return r.lookup(variables, name)
}
