// SPDX-License-Identifier: Apache-2.0

// Writes the layout of the CPython whose headers it is compiled with as a literal of Go: see
// layouts.sh. What a version does not have is "none".

#define Py_BUILD_CORE 1
#include <stddef.h>
#include <stdio.h>
#include <Python.h>
#include <frameobject.h>
#define V PY_MINOR_VERSION
#include <internal/pycore_gil.h>
#include <internal/pycore_pystate.h>
#if V >= 9
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#endif
#if V >= 11
#include <internal/pycore_frame.h>
#include <internal/pycore_object.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_long.h>
#endif
#if V >= 10
#include <internal/pycore_moduleobject.h>
#else
typedef struct { PyObject_HEAD PyObject *md_dict; } PyModuleObject;
#endif
#if V >= 14
#include <internal/pycore_interpframe_structs.h>
#include <internal/pycore_tstate.h>
#endif
#if V < 11
// Objects/dict-common.h is not installed.
struct _dictkeysobject { Py_ssize_t dk_refcnt, dk_size; void *dk_lookup; Py_ssize_t dk_usable, dk_nentries; char dk_indices[]; };
#endif
#if V >= 13
#include <cpython/genobject.h>
#endif

#define G(name) printf("\t\t" #name ": " #name "Layout{")
#define E() printf("},\n")
#define N(field, value) printf(#field ": %d, ", (int)(value))
#define F(field, type, member) N(field, offsetof(type, member))
#define NONE(field) printf(#field ": none, ")
#define TS PyThreadState
#define IS PyInterpreterState
#define RS _PyRuntimeState
#if V >= 11
#define FR struct _PyInterpreterFrame
#else
#define FR struct _frame
#endif

int main(void) {
	printf("\t{\n\t\tminor: %d, isFree: %s,\n", V,
#ifdef Py_GIL_DISABLED
	       "true"
#else
	       "false"
#endif
	);
	G(runtime);
#if V == 8
	F(finalizing, RS, finalizing);
#else
	F(finalizing, RS, _finalizing);
#endif
	F(interpreters, RS, interpreters.head);
#if V < 12
	F(gil, RS, ceval.gil);
	F(current, RS, gilstate.tstate_current);
#else
	NONE(gil); NONE(current);
#endif
	E();
	G(interpreter);
	F(id, IS, id); F(next, IS, next);
#if V < 11
	F(threads, IS, tstate_head);
#else
	F(threads, IS, threads.head);
#endif
#if V < 12
	F(modules, IS, modules);
	NONE(gil);
#else
	F(modules, IS, imports.modules);
	F(gil, IS, ceval.gil);
#endif
	F(sysdict, IS, sysdict); F(builtins, IS, builtins);
#if V >= 14
	F(tasks, IS, asyncio_tasks_head);
#else
	NONE(tasks);
#endif
	E();
	G(gil);
	F(holder, struct _gil_runtime_state, last_holder);
	F(locked, struct _gil_runtime_state, locked);
#ifdef Py_GIL_DISABLED
	F(enabled, struct _gil_runtime_state, enabled);
#else
	NONE(enabled);
#endif
	E();
	G(thread);
	N(size, sizeof(TS));
	F(prev, TS, prev); F(next, TS, next); F(interpreter, TS, interp);
#if V < 11
	F(frame, TS, frame);
#elif V < 13
	NONE(frame);
#else
	F(frame, TS, current_frame);
#endif
#if V >= 10 && V <= 12
	F(cframe, TS, cframe); F(rootCFrame, TS, root_cframe);
#else
	NONE(cframe); NONE(rootCFrame);
#endif
#if V >= 15
	F(baseFrame, TS, base_frame); F(holdsGIL, TS, holds_gil); F(gilRequested, TS, gil_requested);
#else
	NONE(baseFrame); NONE(holdsGIL); NONE(gilRequested);
#endif
	F(threadID, TS, thread_id);
#if V >= 11
	F(nativeID, TS, native_thread_id);
#else
	NONE(nativeID);
#endif
#if V >= 13
	F(state, TS, state);
#else
	NONE(state);
#endif
#if V < 12
	F(raisedType, TS, curexc_type); F(raisedValue, TS, curexc_value); F(raisedTraceback, TS, curexc_traceback);
#else
	NONE(raisedType); F(raisedValue, TS, current_exception); NONE(raisedTraceback);
#endif
	F(handled, TS, exc_info); F(id, TS, id);
#if V >= 14
	F(runningLoop, _PyThreadStateImpl, asyncio_running_loop);
	F(runningTask, _PyThreadStateImpl, asyncio_running_task);
	F(tasks, _PyThreadStateImpl, asyncio_tasks_head);
#else
	NONE(runningLoop); NONE(runningTask); NONE(tasks);
#endif
	E();
	G(handled);
#if V < 11
	F(class, _PyErr_StackItem, exc_type); F(traceback, _PyErr_StackItem, exc_traceback);
#else
	NONE(class); NONE(traceback);
#endif
	F(value, _PyErr_StackItem, exc_value); F(previous, _PyErr_StackItem, previous_item);
	E();
	G(cframe);
#if V == 10
	NONE(frame); F(previous, CFrame, previous);
#elif V == 11 || V == 12
	F(frame, _PyCFrame, current_frame); F(previous, _PyCFrame, previous);
#else
	NONE(frame); NONE(previous);
#endif
	E();
	G(frame);
	N(size, sizeof(FR));
	F(globals, FR, f_globals); F(builtins, FR, f_builtins); F(namespace, FR, f_locals);
#if V < 11
	F(code, FR, f_code); F(previous, FR, f_back); NONE(instruction); F(last, FR, f_lasti); F(locals, FR, f_localsplus);
	NONE(owner); NONE(isEntry); NONE(function); NONE(object); F(stack, FR, f_valuestack);
	F(line, FR, f_lineno); F(trace, FR, f_trace); F(generator, FR, f_gen);
#if V == 10
	NONE(stackTop); F(stackDepth, FR, f_stackdepth); F(state, FR, f_state);
#else
	F(stackTop, FR, f_stacktop); NONE(stackDepth); F(state, FR, f_executing);
#endif
	NONE(stackPointer); NONE(tlbcIndex);
#else
#if V < 13
	F(code, FR, f_code); F(instruction, FR, prev_instr);
#else
	F(code, FR, f_executable); F(instruction, FR, instr_ptr);
#endif
	F(previous, FR, previous); NONE(last); F(locals, FR, localsplus); F(owner, FR, owner);
#if V == 11
	F(isEntry, FR, is_entry); F(function, FR, f_func);
#else
	NONE(isEntry); F(function, FR, f_funcobj);
#endif
	F(object, FR, frame_obj); NONE(stack); NONE(line); NONE(trace); NONE(generator); NONE(stackTop);
#if V < 14
	F(stackDepth, FR, stacktop); NONE(state); NONE(stackPointer); NONE(tlbcIndex);
#else
	NONE(stackDepth); NONE(state); F(stackPointer, FR, stackpointer);
#ifdef Py_GIL_DISABLED
	F(tlbcIndex, FR, tlbc_index);
#else
	NONE(tlbcIndex);
#endif
#endif
#endif
	E();
	G(frameObject);
#if V < 11
	NONE(frame); NONE(line);
#else
	F(frame, struct _frame, f_frame); F(line, struct _frame, f_lineno);
#endif
	E();
	G(code);
	N(size, sizeof(PyCodeObject));
	F(arguments, PyCodeObject, co_argcount); F(keywordOnly, PyCodeObject, co_kwonlyargcount); F(flags, PyCodeObject, co_flags);
	F(firstLine, PyCodeObject, co_firstlineno); F(fileName, PyCodeObject, co_filename); F(name, PyCodeObject, co_name);
	F(localCount, PyCodeObject, co_nlocals);
	F(constants, PyCodeObject, co_consts);
#if V < 10
	F(lines, PyCodeObject, co_lnotab);
#else
	F(lines, PyCodeObject, co_linetable);
#endif
#if V < 11
	NONE(qualifiedName); F(bytes, PyCodeObject, co_code); NONE(adaptive); NONE(localNames); NONE(localKinds);
	F(variables, PyCodeObject, co_varnames); F(cells, PyCodeObject, co_cellvars); F(free, PyCodeObject, co_freevars);
#else
	F(qualifiedName, PyCodeObject, co_qualname); NONE(bytes); F(adaptive, PyCodeObject, co_code_adaptive);
	F(localNames, PyCodeObject, co_localsplusnames); F(localKinds, PyCodeObject, co_localspluskinds);
	NONE(variables); NONE(cells); NONE(free);
#endif
#if V >= 14 && defined(Py_GIL_DISABLED)
	F(tlbc, PyCodeObject, co_tlbc);
#else
	NONE(tlbc);
#endif
	E();
	G(object);
	N(size, sizeof(PyObject)); F(class, PyObject, ob_type); F(count, PyVarObject, ob_size);
	E();
	G(class);
	N(size, sizeof(PyTypeObject)); F(name, PyTypeObject, tp_name); F(flags, PyTypeObject, tp_flags);
	F(basicSize, PyTypeObject, tp_basicsize); F(itemSize, PyTypeObject, tp_itemsize); F(dictOffset, PyTypeObject, tp_dictoffset);
	F(base, PyTypeObject, tp_base); F(dict, PyTypeObject, tp_dict); F(mro, PyTypeObject, tp_mro);
	F(heapName, PyHeapTypeObject, ht_name); F(heapQualifiedName, PyHeapTypeObject, ht_qualname); F(cachedKeys, PyHeapTypeObject, ht_cached_keys);
	E();
	G(sequence);
	F(tupleItems, PyTupleObject, ob_item); F(listItems, PyListObject, ob_item);
	F(bytesData, PyBytesObject, ob_sval); F(byteArrayData, PyByteArrayObject, ob_start);
	F(setUsed, PySetObject, used); F(setMask, PySetObject, mask); F(setTable, PySetObject, table);
	E();
	G(dict);
	F(used, PyDictObject, ma_used); F(keys, PyDictObject, ma_keys); F(values, PyDictObject, ma_values);
#if V < 11
	F(keysSize, struct _dictkeysobject, dk_size); NONE(keysLogSize); NONE(keysLogIndexBytes); NONE(keysKind);
#else
	NONE(keysSize); F(keysLogSize, struct _dictkeysobject, dk_log2_size); F(keysLogIndexBytes, struct _dictkeysobject, dk_log2_index_bytes);
	F(keysKind, struct _dictkeysobject, dk_kind);
#endif
	F(keysUsable, struct _dictkeysobject, dk_usable); F(keysCount, struct _dictkeysobject, dk_nentries); F(keysIndices, struct _dictkeysobject, dk_indices);
#if V < 11
	NONE(valuesItems); NONE(valuesCapacity); NONE(valuesSize); NONE(valuesValid);
#else
	F(valuesItems, struct _dictvalues, values);
#if V < 13
	NONE(valuesCapacity); NONE(valuesSize); NONE(valuesValid);
#else
	F(valuesCapacity, struct _dictvalues, capacity); F(valuesSize, struct _dictvalues, size); F(valuesValid, struct _dictvalues, valid);
#endif
#endif
#if V < 11
	NONE(beforeObject); NONE(valuesBeforeObject);
#elif V == 11
	N(beforeObject, -MANAGED_DICT_OFFSET); N(valuesBeforeObject, 4 * sizeof(PyObject *));
#elif V == 12
	N(beforeObject, 3 * sizeof(PyObject *)); NONE(valuesBeforeObject);
#else
	N(beforeObject, -MANAGED_DICT_OFFSET); NONE(valuesBeforeObject);
#endif
	E();
	G(number);
	F(floatValue, PyFloatObject, ob_fval); F(complexValue, PyComplexObject, cval);
#if V < 12
	NONE(longTag); F(longDigits, PyLongObject, ob_digit);
#else
	F(longTag, PyLongObject, long_value.lv_tag); F(longDigits, PyLongObject, long_value.ob_digit);
#endif
	E();
	G(text);
	F(length, PyASCIIObject, length); F(state, PyASCIIObject, state);
	PyASCIIObject text;
	memset(&text, 0, sizeof text);
	text.state.kind = 1;
	unsigned state;
	memcpy(&state, &text.state, sizeof state);
	N(kindShift, __builtin_ctz(state));
	N(asciiData, sizeof(PyASCIIObject)); N(compactData, sizeof(PyCompactUnicodeObject)); F(data, PyUnicodeObject, data);
	E();
	G(generator);
#if V < 11
	F(frame, PyGenObject, gi_frame); NONE(state);
#else
	F(frame, PyGenObject, gi_iframe); F(state, PyGenObject, gi_frame_state);
#endif
#if V >= 12
	NONE(code);
#else
	F(code, PyGenObject, gi_code);
#endif
	F(name, PyGenObject, gi_name); F(qualifiedName, PyGenObject, gi_qualname);
	E();
	printf("\t\tstates: generatorStates{");
#if V >= 11
	N(created, FRAME_CREATED); N(suspended, FRAME_SUSPENDED); N(executing, FRAME_EXECUTING); N(last, FRAME_CLEARED);
#if V >= 13
	N(yieldsFrom, FRAME_SUSPENDED_YIELD_FROM);
#else
	N(yieldsFrom, 127);
#endif
#if V >= 15
	N(yieldsFromLocked, FRAME_SUSPENDED_YIELD_FROM_LOCKED);
#else
	N(yieldsFromLocked, 127);
#endif
#endif
	E();
	G(exception);
	F(dict, PyBaseExceptionObject, dict); F(arguments, PyBaseExceptionObject, args); F(traceback, PyBaseExceptionObject, traceback);
	F(context, PyBaseExceptionObject, context); F(cause, PyBaseExceptionObject, cause); F(suppressContext, PyBaseExceptionObject, suppress_context);
#if V >= 11
	F(notes, PyBaseExceptionObject, notes);
#else
	NONE(notes);
#endif
	E();
	G(traceback);
	F(next, PyTracebackObject, tb_next); F(frame, PyTracebackObject, tb_frame);
	F(last, PyTracebackObject, tb_lasti); F(line, PyTracebackObject, tb_lineno);
	E();
	G(other);
	F(moduleDict, PyModuleObject, md_dict); F(functionCode, PyFunctionObject, func_code);
	F(functionName, PyFunctionObject, func_name); F(functionQualifiedName, PyFunctionObject, func_qualname);
	F(functionModule, PyFunctionObject, func_module);
	F(cellValue, PyCellObject, ob_ref);
	F(methodFunction, PyMethodObject, im_func); F(methodSelf, PyMethodObject, im_self);
	F(builtinMethod, PyCFunctionObject, m_ml); F(builtinSelf, PyCFunctionObject, m_self);
	F(weakTarget, PyWeakReference, wr_object);
	E();
	printf("\t},\n");
	return 0;
}
