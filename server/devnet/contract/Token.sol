// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// The token of the local devnet: an ERC-20 with a fixed supply, divided among its first holders.
contract Token {
    string public constant name = "Devnet Dollar";
    string public constant symbol = "DEVD";
    uint8 public constant decimals = 6;

    uint256 public totalSupply;
    mapping(address holder => uint256) public balanceOf;
    mapping(address holder => mapping(address spender => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    error InsufficientBalance(uint256 balance, uint256 value);
    error InsufficientAllowance(uint256 allowance, uint256 value);

    constructor(address[] memory holders, uint256 share) {
        for (uint256 i = 0; i < holders.length; i++) {
            totalSupply += share;
            balanceOf[holders[i]] += share;
            emit Transfer(address(0), holders[i], share);
        }
    }

    function transfer(address to, uint256 value) external returns (bool) {
        move(msg.sender, to, value);
        return true;
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        if (allowed < value) revert InsufficientAllowance(allowed, value);
        if (allowed != type(uint256).max) allowance[from][msg.sender] = allowed - value;
        move(from, to, value);
        return true;
    }

    function move(address from, address to, uint256 value) private {
        uint256 balance = balanceOf[from];
        if (balance < value) revert InsufficientBalance(balance, value);
        balanceOf[from] = balance - value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }
}
