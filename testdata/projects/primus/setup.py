from setuptools import find_packages, setup

setup(name="primus_turbo", version="0.1.0", packages=find_packages())
