// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"fmt"
	"strings"
)

// layout is where HotSpot has what. What a version does not have is the zero field.
type layout struct {
	heapMemory, heapSegmap, heapLog2                    field
	spaceLow, spaceHigh                                 field
	arrayLength, arrayData                              field // of a GrowableArray
	blockLength, blockUsed                              field
	blobName, blobSize, blobFrameSize, blobComplete     field
	codeBegin, codeEnd                                  field // addresses, where the blob has them
	codeOffset, dataOffset, relocationSize              field // else offsets from the blob
	mutableData, mutableSize                            field
	queueBuffer, queueBegin, queueEnd                   field
	codeletSize, codeletDescription                     field
	method, scopesData, scopesDataOffset, scopesPCs     field
	scopesEnd, metadata, immutableData, immutableSize   field
	originalPC, deoptimize, deoptimizeOffset            field
	entryBCI                                            field
	pcOffset, scopeOffset                               field // of a PcDesc
	constMethod, accessFlags                            field
	constants, methodFlags, codeSize, nameIndex         field
	signatureIndex, maxLocals, constMethodSize          field
	poolHolder, poolLength, poolSourceFile, sourceFile  field
	className, superClass, fieldInfo, fields            field
	symbolLength, symbolBody                            field
	listLength, listThreads, threadNext                 field
	threadObject, vthread, osThread, threadID           field
	stackBase, stackSize, threadState, pendingMonitor   field
	waitingMonitor, pendingException, exceptionOop      field
	monitorObject, monitorOwner, basicLock, basicObject field
	klass, narrowKlass, ownerID                         field
	poolOfClass, fieldCount, mirror, layoutHelper       field
	loaderClasses, loaderNext, nextClass                field

	sizes layoutSizes

	// Addresses of variables; 0 where this version has none.
	heaps, heap, interpreter, callStub   uint64
	threadList, smrList                  uint64
	oopBase, oopShift, klassBase, kShift uint64
	vmMajor, jdkVersion, vmRelease       uint64
	loaders                              uint64
	hasLines, hasLocals                  int64 // flags of a ConstMethod
	statuses                             map[int64]string
	senderSP, monitorBits                int64
}

// layoutSizes are the sizes of structures, in bytes.
type layoutSizes struct {
	block, codelet, codeBlob, pcDesc, constMethod, pool, objectLock uint64
}

// wantedField is a member to find. Names are alternatives of versions, the first one found counts.
type wantedField struct {
	names      string
	to         *field
	isRequired bool
}

func (l *layout) wantedFields() []wantedField {
	return []wantedField{
		{"CodeHeap::_memory", &l.heapMemory, true},
		{"CodeHeap::_segmap", &l.heapSegmap, true},
		{"CodeHeap::_log2_segment_size", &l.heapLog2, true},
		{"VirtualSpace::_low", &l.spaceLow, true},
		{"VirtualSpace::_high", &l.spaceHigh, true},
		{"GrowableArrayBase::_len|GenericGrowableArray::_len", &l.arrayLength, false},
		{"GrowableArray<int>::_data", &l.arrayData, false},
		{"HeapBlock::Header::_length", &l.blockLength, true},
		{"HeapBlock::Header::_used", &l.blockUsed, true},
		{"CodeBlob::_name", &l.blobName, true},
		{"CodeBlob::_size", &l.blobSize, true},
		{"CodeBlob::_frame_size", &l.blobFrameSize, true},
		{"CodeBlob::_frame_complete_offset", &l.blobComplete, true},
		{"CodeBlob::_code_begin", &l.codeBegin, false},
		{"CodeBlob::_code_end", &l.codeEnd, false},
		{"CodeBlob::_code_offset", &l.codeOffset, false},
		{"CodeBlob::_data_offset", &l.dataOffset, false},
		{"CodeBlob::_relocation_size", &l.relocationSize, false},
		{"CodeBlob::_mutable_data", &l.mutableData, false},
		{"CodeBlob::_mutable_data_size", &l.mutableSize, false},
		{"StubQueue::_stub_buffer", &l.queueBuffer, true},
		{"StubQueue::_queue_begin", &l.queueBegin, true},
		{"StubQueue::_queue_end", &l.queueEnd, true},
		{"InterpreterCodelet::_size", &l.codeletSize, true},
		{"InterpreterCodelet::_description", &l.codeletDescription, true},
		{"CompiledMethod::_method|nmethod::_method", &l.method, true},
		{"CompiledMethod::_scopes_data_begin", &l.scopesData, false},
		{"nmethod::_scopes_data_offset", &l.scopesDataOffset, false},
		{"nmethod::_scopes_pcs_offset", &l.scopesPCs, true},
		{"nmethod::_dependencies_offset", &l.scopesEnd, false},
		{"nmethod::_metadata_offset", &l.metadata, false},
		{"nmethod::_immutable_data", &l.immutableData, false},
		{"nmethod::_immutable_data_size", &l.immutableSize, false},
		{"nmethod::_orig_pc_offset", &l.originalPC, false},
		{"CompiledMethod::_deopt_handler_begin", &l.deoptimize, false},
		{"nmethod::_deoptimize_offset|nmethod::_deopt_handler_offset", &l.deoptimizeOffset, false},
		{"nmethod::_entry_bci", &l.entryBCI, false},
		{"PcDesc::_pc_offset", &l.pcOffset, true},
		{"PcDesc::_scope_decode_offset", &l.scopeOffset, true},
		{"Method::_constMethod", &l.constMethod, true},
		{"Method::_access_flags", &l.accessFlags, true},
		{"ConstMethod::_constants", &l.constants, true},
		{"ConstMethod::_flags|ConstMethod::_flags._flags", &l.methodFlags, true},
		{"ConstMethod::_code_size", &l.codeSize, true},
		{"ConstMethod::_name_index", &l.nameIndex, true},
		{"ConstMethod::_signature_index", &l.signatureIndex, true},
		{"ConstMethod::_max_locals", &l.maxLocals, true},
		{"ConstMethod::_constMethod_size", &l.constMethodSize, true},
		{"ConstantPool::_pool_holder", &l.poolHolder, true},
		{"ConstantPool::_length", &l.poolLength, true},
		{"ConstantPool::_source_file_name_index", &l.poolSourceFile, false},
		{"InstanceKlass::_source_file_name_index", &l.sourceFile, false},
		{"InstanceKlass::_fieldinfo_stream", &l.fieldInfo, false},
		{"InstanceKlass::_fields", &l.fields, false},
		{"InstanceKlass::_java_fields_count", &l.fieldCount, false},
		{"InstanceKlass::_constants", &l.poolOfClass, true},
		{"Klass::_java_mirror", &l.mirror, false},
		{"Klass::_layout_helper", &l.layoutHelper, false},
		{"Klass::_next_link", &l.nextClass, false},
		{"ClassLoaderData::_klasses", &l.loaderClasses, false},
		{"ClassLoaderData::_next", &l.loaderNext, false},
		{"Klass::_name", &l.className, true},
		{"Klass::_super", &l.superClass, true},
		{"Symbol::_length", &l.symbolLength, false},
		{"Symbol::_body|Symbol::_body[0]", &l.symbolBody, true},
		{"ThreadsList::_length", &l.listLength, false},
		{"ThreadsList::_threads", &l.listThreads, false},
		{"JavaThread::_next", &l.threadNext, false},
		{"JavaThread::_threadObj", &l.threadObject, true},
		{"JavaThread::_vthread", &l.vthread, false},
		{"JavaThread::_osthread|Thread::_osthread", &l.osThread, true},
		{"OSThread::_thread_id", &l.threadID, true},
		{"JavaThread::_stack_base|Thread::_stack_base", &l.stackBase, false},
		{"JavaThread::_stack_size|Thread::_stack_size", &l.stackSize, false},
		{"JavaThread::_thread_state", &l.threadState, false},
		{"JavaThread::_current_pending_monitor|Thread::_current_pending_monitor", &l.pendingMonitor, false},
		{"JavaThread::_current_waiting_monitor|Thread::_current_waiting_monitor", &l.waitingMonitor, false},
		{"JavaThread::_monitor_owner_id", &l.ownerID, false},
		{"ThreadShadow::_pending_exception", &l.pendingException, false},
		{"JavaThread::_exception_oop", &l.exceptionOop, false},
		{"ObjectMonitor::_object", &l.monitorObject, false},
		{"ObjectMonitor::_owner", &l.monitorOwner, false},
		{"BasicObjectLock::_lock", &l.basicLock, false},
		{"BasicObjectLock::_obj", &l.basicObject, false},
		{"oopDesc::_metadata._klass", &l.klass, true},
		{"oopDesc::_metadata._compressed_klass", &l.narrowKlass, true},
	}
}

// wantedNumber is a static variable, a type's size or a constant to find.
type wantedNumber struct {
	names      string
	to         *uint64
	isRequired bool
}

func (l *layout) wantedStatics() []wantedNumber {
	return []wantedNumber{
		{"CodeCache::_heaps", &l.heaps, false},
		{"CodeCache::_heap", &l.heap, false},
		{"AbstractInterpreter::_code", &l.interpreter, true},
		{"StubRoutines::_call_stub_return_address", &l.callStub, true},
		{"Threads::_thread_list", &l.threadList, false},
		{"ThreadsSMRSupport::_java_thread_list", &l.smrList, false},
		{"CompressedOops::_base|CompressedOops::_narrow_oop._base|Universe::_narrow_oop._base", &l.oopBase, false},
		{"CompressedOops::_shift|CompressedOops::_narrow_oop._shift|Universe::_narrow_oop._shift", &l.oopShift, false},
		{"CompressedKlassPointers::_base|CompressedKlassPointers::_narrow_klass._base|Universe::_narrow_klass._base", &l.klassBase, false},
		{"CompressedKlassPointers::_shift|CompressedKlassPointers::_narrow_klass._shift|Universe::_narrow_klass._shift", &l.kShift, false},
		{"Abstract_VM_Version::_vm_major_version", &l.vmMajor, false},
		{"JDK_Version::_current", &l.jdkVersion, false},
		{"Abstract_VM_Version::_s_vm_release", &l.vmRelease, true},
		{"ClassLoaderDataGraph::_head", &l.loaders, false},
	}
}

func (l *layout) wantedSizes() []wantedNumber {
	return []wantedNumber{
		{"HeapBlock", &l.sizes.block, true},
		{"InterpreterCodelet", &l.sizes.codelet, true},
		{"CodeBlob", &l.sizes.codeBlob, true},
		{"PcDesc", &l.sizes.pcDesc, true},
		{"ConstMethod", &l.sizes.constMethod, true},
		{"ConstantPool", &l.sizes.pool, true},
		{"BasicObjectLock", &l.sizes.objectLock, false},
	}
}

// knownTypes returns the structures whose members layouts have.
func knownTypes() map[string]bool {
	l, known := &layout{}, map[string]bool{}
	add := func(names string) {
		for name := range strings.SplitSeq(names, "|") {
			if i := strings.LastIndex(name, "::"); i > 0 {
				known[name[:i]] = true
			}
		}
	}
	for _, w := range l.wantedFields() {
		add(w.names)
	}
	for _, w := range l.wantedStatics() {
		add(w.names)
	}
	return known
}

// maxStruct bounds the offset of a member in its structure.
const maxStruct = 1 << 16

// newLayout takes the layout from the tables.
func newLayout(t *tables) (*layout, error) {
	l := &layout{}
	for _, w := range l.wantedFields() {
		for name := range strings.SplitSeq(w.names, "|") {
			if *w.to = t.fields[name]; w.to.isKnown {
				break
			}
		}
		switch {
		case !w.to.isKnown && w.isRequired:
			return nil, fmt.Errorf("its tables have no member %s", w.names)
		case w.to.offset > maxStruct:
			return nil, fmt.Errorf("its tables have %s at %#x, expected at most %#x", w.names, w.to.offset, maxStruct)
		}
	}
	find := func(list []wantedNumber, from map[string]uint64) error {
		for _, w := range list {
			for name := range strings.SplitSeq(w.names, "|") {
				if *w.to = from[name]; *w.to != 0 {
					break
				}
			}
			if *w.to == 0 && w.isRequired {
				return fmt.Errorf("its tables have no %s", w.names)
			}
		}
		return nil
	}
	if err := find(l.wantedStatics(), t.statics); err != nil {
		return nil, err
	}
	if err := find(l.wantedSizes(), t.sizes); err != nil {
		return nil, err
	}
	return l, l.takeConstants(t)
}

// takeConstants takes flags and the names of states.
func (l *layout) takeConstants(t *tables) error {
	for _, w := range []struct {
		names string
		to    *int64
	}{
		{"ConstMethod::_has_linenumber_table|ConstMethodFlags::_misc_has_linenumber_table", &l.hasLines},
		{"ConstMethod::_has_localvariable_table|ConstMethodFlags::_misc_has_localvariable_table", &l.hasLocals},
		{"frame::interpreter_frame_sender_sp_offset", &l.senderSP},
		{"markWord::monitor_value|markOopDesc::monitor_value", &l.monitorBits},
	} {
		for name := range strings.SplitSeq(w.names, "|") {
			if n, ok := t.constants[name]; ok {
				*w.to = n
				break
			}
		}
	}
	if l.hasLines == 0 {
		return fmt.Errorf("its tables have no flag of line numbers")
	}
	l.statuses = map[int64]string{}
	for name, value := range t.constants {
		for _, prefix := range []string{"JavaThreadStatus::", "java_lang_Thread::"} {
			if status, ok := strings.CutPrefix(name, prefix); ok {
				l.statuses[value] = status
			}
		}
	}
	return nil
}
