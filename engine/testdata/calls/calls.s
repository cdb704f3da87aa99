# Debugging information whose expressions call each other. All its numbers are
# known to the assembler, so nothing is relocated.
	.text	# to be linked at 0x1000
	.skip 0x100, 0x90
	.section .debug_abbrev,"",@progbits
	.uleb128 1, 0x11	# 1: DW_TAG_compile_unit, with children
	.byte 1
	.uleb128 0x11, 0x01, 0x12, 0x07, 0, 0	# DW_AT_low_pc addr, DW_AT_high_pc data8
	.uleb128 2, 0x34	# 2: DW_TAG_variable
	.byte 0
	.uleb128 0x03, 0x08, 0x02, 0x18, 0, 0	# DW_AT_name string, DW_AT_location exprloc
	.uleb128 3, 0x34	# 3
	.byte 0
	.uleb128 0x03, 0x08, 0x02, 0x17, 0, 0	# DW_AT_location sec_offset
	.uleb128 4, 0x34	# 4
	.byte 0
	.uleb128 0x03, 0x08, 0x1c, 0x0a, 0, 0	# DW_AT_const_value block1
	.uleb128 5, 0x34	# 5
	.byte 0
	.uleb128 0x03, 0x08, 0, 0	# neither
	.uleb128 6, 0x36	# 6: DW_TAG_dwarf_procedure
	.byte 0
	.uleb128 0x03, 0x08, 0x02, 0x18, 0, 0
	.uleb128 7, 0x34	# 7
	.byte 0
	.uleb128 0x03, 0x08, 0x02, 0x18, 0x49, 0x13, 0, 0	# DW_AT_type ref4
	.uleb128 9, 0x2e	# 9: DW_TAG_subprogram
	.byte 0
	.uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0	# DW_AT_low_pc addr, DW_AT_high_pc data8
	.uleb128 8, 0x24	# 8: DW_TAG_base_type
	.byte 0
	.uleb128 0x03, 0x08, 0x3e, 0x0b, 0x0b, 0x0b, 0, 0	# DW_AT_encoding, DW_AT_byte_size data1
	.uleb128 0

# A variable or procedure of an abbreviation, with its operations to come.
.macro entry abbrev, name
\name:	.uleb128 \abbrev
	.asciz "\name"
	.uleb128 .Lend_\name - .Lexpr_\name
.Lexpr_\name:
.endm
.macro done name
.Lend_\name:
.endm

	.section .debug_info,"",@progbits
.Linfo:
.Lfirst:
	.long .Lfirst_end - .Lfirst - 4
	.2byte 5
	.byte 1, 8	# DW_UT_compile, addresses of 8 bytes
	.long 0
	.uleb128 1
	.8byte 0x1000, 0x100
	.uleb128 9
	.asciz "function"
	.8byte 0x1000, 0x100
	entry 6, double	# DW_OP_dup; DW_OP_plus
	.byte 0x12, 0x22
	done double
	entry 6, quadruple	# DW_OP_call2 double; DW_OP_call4 double
	.byte 0x98
	.2byte double - .Lfirst
	.byte 0x99
	.long double - .Lfirst
	done quadruple
	entry 6, forever	# DW_OP_call2 forever
	.byte 0x98
	.2byte forever - .Lfirst
	done forever
	entry 2, in_memory	# DW_OP_breg7 16
	.byte 0x77, 16
	done in_memory
listed:	.uleb128 3
	.asciz "listed"
	.long .Llist - .Llists
constant: .uleb128 4
	.asciz "constant"
	.byte 4
	.long 0x11223344
nothing: .uleb128 5
	.asciz "nothing"
number:	.uleb128 8
	.asciz "number"
	.byte 5, 2	# DW_ATE_signed, 2 bytes
	entry 7, typed	# DW_OP_breg7 16
	.byte 0x77, 16
	done typed
	.long number - .Lfirst

	# What the test evaluates.
	entry 2, same_stack	# DW_OP_lit5; DW_OP_call2 double; DW_OP_stack_value
	.byte 0x35, 0x98
	.2byte double - .Lfirst
	.byte 0x9f
	done same_stack
	entry 2, calls_that_call	# DW_OP_lit3; DW_OP_call4 quadruple; DW_OP_stack_value
	.byte 0x33, 0x99
	.long quadruple - .Lfirst
	.byte 0x9f
	done calls_that_call
	entry 2, location	# DW_OP_call2 in_memory; DW_OP_plus_uconst 8
	.byte 0x98
	.2byte in_memory - .Lfirst
	.byte 0x23, 8
	done location
	entry 2, from_list	# DW_OP_call4 listed
	.byte 0x99
	.long listed - .Lfirst
	done from_list
	entry 2, from_constant	# DW_OP_call_ref constant
	.byte 0x9a
	.long constant - .Linfo
	done from_constant
	entry 2, no_effect	# DW_OP_lit9; DW_OP_call2 nothing; DW_OP_stack_value
	.byte 0x39, 0x98
	.2byte nothing - .Lfirst
	.byte 0x9f
	done no_effect
	entry 2, other_unit	# DW_OP_lit2; DW_OP_call_ref outside; DW_OP_stack_value
	.byte 0x32, 0x9a
	.long outside - .Linfo
	.byte 0x9f
	done other_unit
	entry 2, circle	# DW_OP_call2 forever
	.byte 0x98
	.2byte forever - .Lfirst
	done circle
	entry 2, underflow	# DW_OP_call2 double
	.byte 0x98
	.2byte double - .Lfirst
	done underflow
	entry 2, no_entry	# DW_OP_call2 1
	.byte 0x98
	.2byte 1
	done no_entry
	entry 2, value_of	# DW_OP_GNU_variable_value typed; DW_OP_stack_value
	.byte 0xfd
	.long typed - .Linfo
	.byte 0x9f
	done value_of
	entry 2, list_that_calls	# DW_OP_call4 calling
	.byte 0x99
	.long calling - .Lfirst
	done list_that_calls
	entry 2, list_in_a_circle	# DW_OP_call4 endless
	.byte 0x99
	.long endless - .Lfirst
	done list_in_a_circle
	entry 2, object	# DW_OP_call_ref of_object
	.byte 0x9a
	.long of_object - .Linfo
	done object
	entry 2, object_of_a_list	# DW_OP_call4 objectless
	.byte 0x99
	.long objectless - .Lfirst
	done object_of_a_list
endless: .uleb128 3
	.asciz "endless"
	.long .Lendless - .Llists
objectless: .uleb128 3
	.asciz "objectless"
	.long .Lobjectless - .Llists
calling: .uleb128 3
	.asciz "calling"
	.long .Lcalling - .Llists
	.byte 0
.Lfirst_end:

.Lsecond:
	.long .Lsecond_end - .Lsecond - 4
	.2byte 5
	.byte 1, 8
	.long 0
	.uleb128 1
	.8byte 0x2000, 0x100
	entry 6, triple	# DW_OP_lit3; DW_OP_mul
	.byte 0x33, 0x1e
	done triple
	entry 6, outside	# DW_OP_call2 triple: an offset of this unit
	.byte 0x98
	.2byte triple - .Lsecond
	done outside
	entry 6, of_object	# DW_OP_push_object_address
	.byte 0x97
	done of_object
	.byte 0
.Lsecond_end:

	.section .debug_loclists,"",@progbits
.Llists:
	.long .Llists_end - .Llists - 4
	.2byte 5
	.byte 8, 0
	.long 0
.Llist:
	.byte 4	# DW_LLE_offset_pair: DW_OP_breg7 32
	.uleb128 0x00, 0x10, 2
	.byte 0x77, 32
	.byte 4	# DW_OP_reg3
	.uleb128 0x10, 0x20, 1
	.byte 0x53
	.byte 0
.Lcalling:
	.byte 4	# DW_OP_lit7; DW_OP_call_ref outside; DW_OP_stack_value
	.uleb128 0x00, 0x20, 7
	.byte 0x37, 0x9a
	.long outside - .Linfo
	.byte 0x9f
	.byte 0
.Lendless:
	.byte 4	# DW_OP_call_ref endless
	.uleb128 0x00, 0x20, 5
	.byte 0x9a
	.long endless - .Linfo
	.byte 0
.Lobjectless:
	.byte 4	# DW_OP_call_ref of_object
	.uleb128 0x00, 0x20, 5
	.byte 0x9a
	.long of_object - .Linfo
	.byte 0
.Llists_end:
